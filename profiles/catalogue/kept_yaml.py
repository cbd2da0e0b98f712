"""The catalogue's own YAML files, read once and kept beside them in ``__pycache__``, as Python keeps its bytecode.

Reading YAML is a tenth of the processor time of a cold command.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiles import safe_yaml


def load_catalogue_file(path: Path) -> Any:
    """What ``load_document_file`` gives of a YAML file of the catalogue.

    What is kept begins with the SHA-256 of the file, of the reader and of itself: where one of them has changed, the
    file is read again.  Where the folder cannot be written, it is read each time.
    """
    source = Path(safe_yaml.__file__).read_bytes() + path.read_bytes()
    kept = path.parent / "__pycache__" / f"{path.stem}.json"
    with suppress(OSError):
        check, _, text = kept.read_bytes().partition(b"\n")
        if check == _check(source, text):
            return json.loads(text)
    data = safe_yaml.load_document_file(path)
    if not sys.dont_write_bytecode:
        _keep(kept, source, json.dumps(data).encode())
    return data


def _check(source: bytes, text: bytes) -> bytes:
    return sha256(sha256(source).digest() + text).hexdigest().encode()


def _keep(kept: Path, source: bytes, text: bytes) -> None:
    """A reader sees the whole file or none."""
    unfinished = kept.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        unfinished.write_bytes(_check(source, text) + b"\n" + text)
        unfinished.replace(kept)
