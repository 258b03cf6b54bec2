"""A codec of zarr: each stored chunk is a container, which finds and mends its own damage.

FecCodec goes last into the codecs of an array, behind compressors, and into ``index_codecs`` of a sharded one. zarr
finds it by its name, ``fecshards``, when it opens such an array. Needs zarr 3: ``pip install 'fecshards[zarr]'``.
"""

from __future__ import annotations

import asyncio
import functools
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zarr.abc.codec import BytesBytesCodec

from ._native import Code, decode_stream, encode_stream
from .errors import UsageError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer

__all__ = ["FecCodec"]

NAME = "fecshards"
HASHES = ("blake3", "sha256")


@dataclass(frozen=True)
class FecCodec(BytesBytesCodec):
    """Makes a container of k + m shards of each chunk.

    Reading a chunk mends it in memory, and the stored bytes stay as they are. Damaged is raised for a chunk that lost
    more than m shards anywhere. The container has its own k and m, so chunks that were written with others are read
    too. No root is kept: damage is found, but not a container that somebody put in the place of another.
    """

    is_fixed_size = True

    k: int = 16
    m: int = 4
    hash: str = "blake3"

    def __init__(self, *, k: int = 16, m: int = 4, hash: str = "blake3") -> None:
        for number in (k, m):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"k and m are whole numbers, not {number!r}")
        if k < 1 or m < 1:
            raise UsageError("k and m are at least 1")
        Code(k, m)
        if hash not in HASHES:
            raise UsageError(f'hash is "blake3" or "sha256", not {hash!r}')
        for name, value in (("k", k), ("m", m), ("hash", hash)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FecCodec:
        """The codec that zarr.json describes."""
        if data.get("name") != NAME:
            raise ValueError(f"the codec is called {data.get('name')!r}, not {NAME!r}")
        configuration = data.get("configuration") or {}
        unknown = sorted(set(configuration) - {"k", "m", "hash"})
        if unknown:
            raise ValueError(f"the configuration of {NAME} has k, m and hash, not {', '.join(unknown)}")
        return cls(**configuration)

    def to_dict(self) -> dict[str, Any]:
        """The description for zarr.json."""
        return {"name": NAME, "configuration": {"k": self.k, "m": self.m, "hash": self.hash}}

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """The length of the container of so many bytes, whichever they are. zarr asks for that of an index."""
        return _encoded_len(self, input_byte_length)

    def _encode(self, data: bytes) -> bytes:
        # A single thread: zarr has many chunks in work at once.
        sink = io.BytesIO()
        encode_stream(iter((data,)), sink, k=self.k, m=self.m, hash=self.hash, threads=1)  # type: ignore[arg-type]
        return sink.getvalue()

    def _encode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return chunk_spec.prototype.buffer.from_bytes(self._encode(chunk_bytes.to_bytes()))

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        sink = io.BytesIO()
        decode_stream(iter((chunk_bytes.to_bytes(),)), sink, threads=1)
        return chunk_spec.prototype.buffer.from_bytes(sink.getvalue())

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._encode_sync, chunk_bytes, chunk_spec)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)


@functools.lru_cache(maxsize=128)
def _encoded_len(codec: FecCodec, length: int) -> int:
    return len(codec._encode(bytes(length)))
