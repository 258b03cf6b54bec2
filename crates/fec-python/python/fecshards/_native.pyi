import pathlib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Optional, Protocol, Union, final

__all__ = [
    "Code",
    "Repaired",
    "Report",
    "Restored",
    "Shard",
    "decode_file",
    "decode_stream",
    "encode_file",
    "encode_stream",
    "generate_identity",
    "payload_len",
    "read_range",
    "repair_file",
    "verify_file",
    "verify_stream",
]

# An object with a buffer: bytes, bytearray, memoryview, mmap, arrays. typing has no name for it before Python 3.12.
_Buffer = Any
_Path = Union[str, PathLike[str]]
_Root = Union[bytes, str]

class _Reader(Protocol):
    def read(self, size: int, /) -> _Buffer: ...

class _Writer(Protocol):
    def write(self, data: bytes, /) -> Optional[int]: ...

@final
class Code:
    """A Reed-Solomon code: k original shards and m recovery shards, of which any k restore all others."""

    def __new__(cls, k: int, m: int, *, threads: int = 1) -> Code: ...
    @property
    def k(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    def shard_len(self, length: int) -> int: ...
    def encode(self, data: _Buffer) -> list[bytes]: ...
    def recovery(self, originals: Sequence[_Buffer]) -> list[bytes]: ...
    def decode(self, shards: Mapping[int, _Buffer], length: Optional[int] = None) -> bytes: ...
    def rebuild(self, shards: Mapping[int, _Buffer], wanted: Sequence[int]) -> list[bytes]: ...

@final
class Restored:
    """The result of decoding."""

    @property
    def root(self) -> Optional[bytes]: ...
    @property
    def payload_len(self) -> Optional[int]: ...
    @property
    def is_whole(self) -> bool: ...
    @property
    def is_sealed(self) -> bool: ...
    @property
    def sets(self) -> int: ...
    @property
    def mended_sets(self) -> int: ...
    @property
    def lost_sets(self) -> int: ...
    @property
    def lost(self) -> list[tuple[int, int]]: ...

@final
class Shard:
    """The findings about one shard."""

    @property
    def index(self) -> int: ...
    @property
    def state(self) -> Literal["intact", "damaged", "missing"]: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def damage(self) -> list[str]: ...

@final
class Report:
    """The findings about an encoding."""

    @property
    def form(self) -> Literal["container", "shards"]: ...
    @property
    def root(self) -> Optional[bytes]: ...
    @property
    def k(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def payload_len(self) -> Optional[int]: ...
    @property
    def is_sealed(self) -> bool: ...
    @property
    def is_intact(self) -> bool: ...
    @property
    def is_restorable(self) -> Optional[bool]: ...
    @property
    def may_still_lose(self) -> Optional[int]: ...
    @property
    def is_proved(self) -> Optional[bool]: ...
    @property
    def shards(self) -> list[Shard]: ...
    @property
    def damage(self) -> list[str]: ...

@final
class Repaired:
    """The result of a repair."""

    @property
    def root(self) -> bytes: ...
    @property
    def files(self) -> list[pathlib.Path]: ...
    @property
    def written(self) -> bool: ...

def encode_file(
    path: _Path,
    output: _Path,
    *,
    k: int = 33,
    m: int = 67,
    form: Literal["container", "shards"] = "container",
    hash: Literal["blake3", "sha256"] = "blake3",
    set_size: Optional[int] = None,
    recipients: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    overwrite: bool = False,
    threads: Optional[int] = None,
) -> bytes: ...
def encode_stream(
    source: Union[_Reader, Iterable[_Buffer]],
    sink: _Writer,
    *,
    k: int = 33,
    m: int = 67,
    hash: Literal["blake3", "sha256"] = "blake3",
    set_size: Optional[int] = None,
    recipients: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    threads: Optional[int] = None,
) -> bytes: ...
def decode_file(
    source: Union[_Path, Sequence[_Path]],
    output: _Path,
    *,
    root: Optional[_Root] = None,
    identities: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    partial: bool = False,
    overwrite: bool = False,
    threads: Optional[int] = None,
) -> Restored: ...
def payload_len(
    source: Union[_Path, Sequence[_Path]],
    *,
    root: Optional[_Root] = None,
    identities: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    threads: Optional[int] = None,
) -> Optional[int]: ...
def read_range(
    source: Union[_Path, Sequence[_Path]],
    start: int,
    end: Optional[int] = None,
    *,
    root: Optional[_Root] = None,
    identities: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    threads: Optional[int] = None,
) -> bytes: ...
def decode_stream(
    source: Union[_Reader, Iterable[_Buffer]],
    sink: _Writer,
    *,
    root: Optional[_Root] = None,
    identities: Optional[Sequence[str]] = None,
    passphrase: Optional[str] = None,
    early: bool = False,
    threads: Optional[int] = None,
) -> Restored: ...
def verify_file(
    source: Union[_Path, Sequence[_Path]], *, root: Optional[_Root] = None, deep: bool = False, threads: Optional[int] = None
) -> Report: ...
def verify_stream(
    source: Union[_Reader, Iterable[_Buffer]], *, root: Optional[_Root] = None, threads: Optional[int] = None
) -> Report: ...
def repair_file(
    source: Union[_Path, Sequence[_Path]],
    *,
    root: Optional[_Root] = None,
    output: Optional[_Path] = None,
    dry_run: bool = False,
    overwrite: bool = False,
    threads: Optional[int] = None,
) -> Repaired: ...
def generate_identity(kind: Literal["hybrid", "x25519"] = "hybrid") -> tuple[str, str]: ...
