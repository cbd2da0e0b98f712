"""The files of a request lie in a private folder while they are read; it is removed after the answer.

They are numbered there: what a client calls a file is never part of a path.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from api.errors import ServiceBusy
from api.wire.uploads import UploadedFile
from profiles.validation import Finding, require

PREFIX = "meshwright-upload-"


@contextmanager
def received_files(files: Sequence[UploadedFile]) -> Iterator[list[dict[str, str]]]:
    """Name and place of each file.  Raises FindingsInvalid (content that is no base64), ServiceBusy (no space)."""
    contents = _decoded(files)
    try:
        held = TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    except OSError as error:
        raise _no_space(error) from None
    with held as name:
        yield [
            {"name": file.name, "path": _written(Path(name) / str(number), content)}
            for number, (file, content) in enumerate(zip(files, contents, strict=True))
        ]


def _decoded(files: Sequence[UploadedFile]) -> list[bytes]:
    contents: list[bytes] = []
    findings: list[Finding] = []
    for number, file in enumerate(files):
        try:
            contents.append(base64.b64decode(file.content_base64, validate=True))
        except (binascii.Error, ValueError):
            pointer = f"/files/{number}/content_base64"
            findings.append(Finding(pointer, "is not base64", "encode the file's bytes as RFC 4648, section 4, says"))
    require(findings, "body")
    return contents


def _written(path: Path, content: bytes) -> str:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise _no_space(error) from None
    return str(path)


def _no_space(error: OSError) -> ServiceBusy:
    return ServiceBusy(f"the files cannot be held while they are read: {error.strerror}", hint="try again later")
