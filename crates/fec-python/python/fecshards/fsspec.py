"""A file system of fsspec that reads the payload of a container or of shard files.

``fsspec.open("fec::s3://bucket/photos.tar.fec", root="…")`` opens the payload, wherever fsspec can read the encoding.
Needs fsspec: ``pip install 'fecshards[fsspec]'``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Optional, Union

from fsspec.core import url_to_fs  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # type: ignore[import-untyped]
from fsspec.utils import stringify_path  # type: ignore[import-untyped]

from ._native import payload_len, read_range
from .errors import Damaged

__all__ = ["FecFileSystem"]


class FecFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """An encoding as a folder with one file, its payload. It is read-only.

    ``fo`` is a container, a folder of shard files, or a list of shard files, which may be on several file systems: URLs
    of fsspec, or paths. ``root``, ``identities`` and ``passphrase`` are those of read_range, and so are the exceptions:
    each byte is proved, and damage is mended. The file is called like the container without ``.fec``, or like the
    shard files without their numbers. The empty path opens it too, so a chained URL need not name it.

    Ranges of local encodings are read where they are. Anything else is copied to a temporary folder when it is first
    read, and the copy goes away with this object. Files of a list or a folder that cannot be copied count as lost.
    """

    protocol = "fec"
    root_marker = ""
    # As other archives: an object that is kept would keep its copy.
    cachable = False

    def __init__(
        self,
        fo: Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]]] = "",
        root: Union[bytes, str, None] = None,
        identities: Optional[Sequence[str]] = None,
        passphrase: Optional[str] = None,
        target_protocol: Optional[str] = None,
        target_options: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not fo:
            raise ValueError("fec needs a container or shard files: fec::URL, or fo=URL")
        one = isinstance(fo, (str, os.PathLike))
        self._is_list = not one
        urls = [stringify_path(url) for url in ([fo] if one else fo)]  # type: ignore[union-attr]
        options = dict(target_options or {})
        if target_protocol:
            options["protocol"] = target_protocol
        self._targets = [url_to_fs(url, **options) for url in urls]
        self._root = root
        self._how = {"root": root, "identities": identities, "passphrase": passphrase}
        self._lock = threading.RLock()
        self._source: Union[None, str, list[str]] = None
        self._file: Optional[dict[str, Any]] = None

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        # Paths are always relative to the encoding.
        stripped = super()._strip_protocol(path)
        return stripped if isinstance(stripped, list) else stripped.lstrip("/")

    def _opened(self) -> Union[str, list[str]]:
        """The encoding as local paths; it is copied if it is elsewhere."""
        with self._lock:
            if self._source is None:
                if self._is_list:
                    self._source = self._listed()
                else:
                    ((fs, path),) = self._targets
                    self._source = path if isinstance(fs, LocalFileSystem) else self._copied(fs, path)
            return self._source

    def _listed(self) -> list[str]:
        """Those files of the list that are there."""
        sources, failure = [], None
        for number, (fs, path) in enumerate(self._targets):
            if isinstance(fs, LocalFileSystem):
                if os.path.exists(path):
                    sources.append(path)
                continue
            try:
                sources.append(self._fetched(fs, path, str(number)))
            except OSError as error:
                failure = error
        if not sources:
            raise failure or FileNotFoundError(f"none of the {len(self._targets)} files is there")
        return sources

    def _copied(self, fs: AbstractFileSystem, path: str) -> Union[str, list[str]]:
        if not fs.isdir(path):
            return self._fetched(fs, path, "0")
        sources, failure = [], None
        for name in sorted(entry["name"] for entry in fs.ls(path, detail=True) if entry["type"] == "file"):
            try:
                sources.append(self._fetched(fs, name, "0"))
            except OSError as error:
                failure = error
        if not sources:
            raise failure or FileNotFoundError(f"there are no files in {path}")
        return sources

    def _fetched(self, fs: AbstractFileSystem, path: str, within: str) -> str:
        """A copy of a file, in a folder of its own number: lists may have the same name twice."""
        copy = os.path.join(self._folder(), within, os.path.basename(path))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        fs.get_file(path, copy)
        return copy

    def _folder(self) -> str:
        folder: Optional[str] = getattr(self, "_temporary", None)
        if folder is None:
            folder = self._temporary = tempfile.mkdtemp(prefix="fecshards-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _payload(self) -> dict[str, Any]:
        """The entry of the payload, as info returns it."""
        with self._lock:
            if self._file is None:
                source = self._opened()
                size = payload_len(source, **self._how)  # type: ignore[arg-type]
                if size is None:
                    raise Damaged(f"{source}: it was cut, and how long the payload was is lost; decode_file saves the rest")
                self._file = {"name": self._name(), "size": size, "type": "file"}
            return dict(self._file)

    def _name(self) -> str:
        path = self._targets[0][1].rstrip("/")
        name = os.path.basename(path)
        if self._is_list:
            name = _without_number(name)
        elif isinstance(self._source, list) or os.path.isdir(path) and isinstance(self._targets[0][0], LocalFileSystem):
            inside = self._source if isinstance(self._source, list) else os.listdir(path)
            shards = sorted(os.path.basename(file) for file in inside if file.endswith(".shard"))
            name = _without_number(shards[0]) if shards else name
        elif name.endswith(".fec") and name != ".fec":
            name = name[: -len(".fec")]
        return name or "payload"

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Name, size and type of the payload, or of the folder that has it."""
        path = self._strip_protocol(path)
        file = self._payload()
        if path == file["name"]:
            return file
        if path == self.root_marker:
            return {"name": "", "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """The payload, which is all there is."""
        self.info(path)
        file = self._payload()
        return [file if detail else file["name"]]

    def _check(self, path: str) -> dict[str, Any]:
        file = self._payload()
        if self._strip_protocol(path) not in (self.root_marker, file["name"]):
            raise FileNotFoundError(path)
        return file

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any) -> bytes:
        """The bytes of the payload from start to end, which count as those of a slice do."""
        first, behind, _ = slice(start, end).indices(self._check(path)["size"])
        return self._range(first, max(first, behind))

    def _range(self, start: int, end: int) -> bytes:
        return read_range(self._opened(), start, end, **self._how)  # type: ignore[arg-type]

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Optional[int] = None,
        autocommit: bool = True,
        cache_options: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> FecFile:
        if mode != "rb":
            raise NotImplementedError("fec is read-only: encode_file makes containers and shard files")
        file = self._check(path)
        return FecFile(
            self, file["name"], mode, block_size or "default", size=file["size"], cache_options=cache_options, **kwargs
        )


class FecFile(AbstractBufferedFile):  # type: ignore[misc]
    """The payload as a file, which asks for a block at a time."""

    fs: FecFileSystem

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs._range(start, min(end, self.size))


def _without_number(name: str) -> str:
    """The name of the payload in that of a shard file, ``photos.tar.007.shard``."""
    stem, dot, number = name[: -len(".shard")].rpartition(".") if name.endswith(".shard") else ("", "", "")
    return stem if dot and number.isdigit() else name
