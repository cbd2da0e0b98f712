"""Files from outside, opened safely: size, compression and encoding are limited before any parsing.

Limits (all overridable by nobody: a file beyond them is refused with a hint):
``MAX_BYTES`` of content after decompression, ``MAX_RATIO`` of decompressed to compressed size beyond ``RATIO_FROM``
bytes (a gzip bomb), ``MAX_LINE`` characters in one line of text.  Nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from profiles.errors import DocumentInvalid, NotFound

MAX_BYTES = 4 << 30
MAX_TEXT_BYTES = 512 << 20
MAX_RATIO = 400
RATIO_FROM = 64 << 20
MAX_LINE = 4_000_000
HEAD_BYTES = 256 << 10
_CHUNK = 1 << 20
_PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a source: enough to recognise its format."""

    name: str
    raw: bytes
    text: str
    """The same as text; empty for binary content and folders."""
    entries: tuple[str, ...] = ()
    """Names inside a folder, relative, sorted; empty for files."""

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder."""
        return bool(self.entries)


@dataclass(frozen=True)
class SourceFile:
    """One file or folder given by the user.

    ``given_name``: what it is called where its name on disk says nothing, because it came over a network.
    """

    path: Path
    label: str = field(default="")
    given_name: str = field(default="")

    @property
    def where(self) -> str:
        """How errors name the file."""
        return self.label or str(self.path)

    @property
    def name(self) -> str:
        """Base name without its folders, which may hold user names."""
        return self.given_name or self.path.name

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @cached_property
    def sha256(self) -> str:
        """Hash of the bytes on disk (a folder: of its entries' names and hashes)."""
        digest = hashlib.sha256()
        if self.is_folder:
            for child in self.children():
                digest.update(f"{child.path.relative_to(self.path)} {child.sha256}\n".encode())
            return digest.hexdigest()
        with self._open_raw() as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        if self.is_folder:
            return sum(child.size_bytes for child in self.children())
        return self.path.stat().st_size

    def children(self) -> list[SourceFile]:
        """Files below a folder, sorted; symbolic links are not followed."""
        found = sorted(path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())
        return [SourceFile(path) for path in found]

    def child(self, pattern: str) -> SourceFile | None:
        """The first file below the folder whose relative path matches ``pattern`` (glob)."""
        return next((each for each in self.children() if each.path.match(pattern)), None)

    def head(self) -> Head:
        """The first bytes, decompressed.  Raises NotFound, DocumentInvalid."""
        if self.is_folder:
            names = tuple(str(child.path.relative_to(self.path)) for child in self.children()[:5000])
            return Head(self.name, b"", "", names or (".",))
        raw = self._head_bytes
        # A cut in the middle of a character is no reason to call the file binary.
        text = "" if b"\0" in raw[:4096] and raw[:2] not in (b"\xff\xfe", b"\xfe\xff") else _decode(raw)
        return Head(self.name, raw, text)

    @cached_property
    def _head_bytes(self) -> bytes:
        with self.open() as stream:
            try:
                return stream.read(HEAD_BYTES)
            except (OSError, EOFError, zlib.error) as error:
                raise self.broken_compression(error) from None

    def open(self) -> io.BufferedIOBase:
        """Decompressed bytes as a stream that refuses bombs.  gzip is recognised by its magic, not by its name."""
        raw = self._open_raw()
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] in _PICKLE:
            raw.close()
            raise DocumentInvalid(
                "the file is a Python pickle, which can run code when it is read",
                where=self.where,
                hint="export it as JSON or CSV with the tool that wrote it",
            )
        if magic[:2] == b"\x1f\x8b":
            return _Bounded(gzip.GzipFile(fileobj=raw), self, self.size_bytes, raw)
        return _Bounded(raw, self, None, raw)

    def read_bytes(self, limit_bytes: int = MAX_BYTES) -> bytes:
        """All content, decompressed.  Raises DocumentInvalid above ``limit_bytes`` or when compression is broken."""
        parts: list[bytes] = []
        total = 0
        with self.open() as stream:
            try:
                while chunk := stream.read(_CHUNK):
                    total += len(chunk)
                    if total > limit_bytes:
                        raise self.too_large(limit_bytes)
                    parts.append(chunk)
            except (OSError, EOFError, zlib.error) as error:
                raise self.broken_compression(error) from None
        return b"".join(parts)

    def text(self, limit_bytes: int = MAX_TEXT_BYTES) -> str:
        """All content as text: UTF-8 (or UTF-16 by its mark); bytes that are neither become U+FFFD."""
        raw = self.read_bytes(limit_bytes)
        if not raw.strip():
            raise DocumentInvalid("the file is empty", where=self.where, hint="check that the benchmark wrote to it")
        if b"\0" in raw[:4096] and raw[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            raise DocumentInvalid("the file is binary, not text", where=self.where, hint="give the tool's text output")
        return _decode(raw)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines from 1, without their ends.  A line above ``MAX_LINE`` is refused."""
        for number, line in enumerate(self.text().splitlines(), start=1):
            if len(line) > MAX_LINE:
                raise DocumentInvalid(
                    f"line {number} has {len(line):,} characters",
                    where=f"{self.where}:{number}",
                    hint=f"at most {MAX_LINE:,} are read; check that this is the right file",
                )
            yield number, line

    def too_large(self, limit_bytes: int) -> DocumentInvalid:
        """The error for content above a limit."""
        return DocumentInvalid(
            f"the content is larger than {limit_bytes:,} bytes",
            where=self.where,
            hint="split the file, or record a shorter run",
        )

    def broken_compression(self, error: Exception) -> DocumentInvalid:
        """The error for gzip data that ends early or is damaged."""
        return DocumentInvalid(f"the compressed data is damaged: {error}", where=self.where, hint="copy the file again")

    def _open_raw(self) -> io.BufferedReader:
        try:
            return self.path.open("rb")
        except FileNotFoundError:
            raise NotFound("there is no such file", where=self.where, hint="check the path") from None
        except OSError as error:
            what = f"the file cannot be read: {error.strerror or error}"
            raise DocumentInvalid(what, where=self.where, hint="check its permissions") from None


class _Bounded(io.BufferedIOBase):
    """A stream that counts what it gives out and stops at the limits."""

    def __init__(
        self, inner: io.BufferedIOBase, file: SourceFile, compressed_bytes: int | None, raw: io.BufferedReader
    ) -> None:
        self._inner, self._file, self._compressed_bytes, self._given = inner, file, compressed_bytes, 0
        self._raw = raw

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = _CHUNK if size is None or size < 0 else size
        parts: list[bytes] = []
        remaining = wanted
        while remaining > 0:
            chunk = self._inner.read(min(remaining, _CHUNK))
            if not chunk:
                break
            parts.append(chunk)
            remaining -= len(chunk)
            self._given += len(chunk)
            self._check()
            if size is None or size < 0:
                remaining = _CHUNK
        return b"".join(parts)

    def _check(self) -> None:
        if self._given > MAX_BYTES:
            raise self._file.too_large(MAX_BYTES)
        packed = self._compressed_bytes
        if packed is not None and self._given > RATIO_FROM and self._given > MAX_RATIO * packed:
            raise DocumentInvalid(
                f"{packed:,} compressed bytes unfold to more than {self._given:,}: it looks like a gzip bomb",
                where=self._file.where,
                hint="unpack it yourself if you trust it",
            )

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()
        # GzipFile leaves a file open that it did not open itself.
        self._raw.close()
        super().close()


def _decode(raw: bytes) -> str:
    """Text with plain line ends: patterns that end a line must not stumble over files from Windows."""
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(coding, errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")
