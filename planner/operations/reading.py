"""Reading a user's file: as UTF-8 text of a sane size, or refused with one clear error."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from planner.errors import DocumentInvalid, NotFound
from planner.strategy.spelling import did_you_mean

LARGEST_FILE_BYTES = 16 * 1024 * 1024


def read_text(path: Path) -> str:
    """Whole text of a file (``-`` = stdin).  Raises NotFound or DocumentInvalid."""
    if str(path) == "-":
        return _decode(sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1), "stdin")
    try:
        if path.is_dir():
            raise DocumentInvalid("this is a folder, not a file", where=str(path), hint="name a file inside it")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no such file", where=str(path), hint=_neighbour_hint(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentInvalid(
            f"cannot read the file: {reason}", where=str(path), hint="check its permissions and its path"
        ) from None
    return _decode(data, str(path))


def read_json(path: Path) -> Any:
    """JSON value of a file.  Raises NotFound or DocumentInvalid with line and column."""
    from profiles.safe_json import load_json_text

    return load_json_text(read_text(path), str(path))


def read_yaml(path: Path) -> Any:
    """Plain data of a YAML (or JSON) file: no aliases, no tags.  Raises NotFound or DocumentInvalid."""
    from profiles.safe_yaml import load_json_text, load_yaml_text

    text = read_text(path)
    if text.lstrip().startswith("{"):
        # Read as JSON in a hundredth of the time; what is no JSON may be YAML all the same.
        with contextlib.suppress(DocumentInvalid):
            return load_json_text(text, str(path))
    return load_yaml_text(text, str(path))


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all.  Raises DocumentInvalid with the reason."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """The same for bytes."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentInvalid(
            f"cannot write the file: {reason}",
            where=str(path),
            hint="choose a path that can be written, with space left",
        ) from None


def file_exists(path: Path) -> bool:
    """Whether it is there; no text is too odd to ask."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _decode(data: bytes, where: str) -> str:
    if len(data) > LARGEST_FILE_BYTES:
        raise DocumentInvalid(
            f"larger than {LARGEST_FILE_BYTES // 2**20} MiB", where=where, hint="this is hardly the file that you meant"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentInvalid(
            f"not UTF-8 text (byte {error.start})", where=where, hint="save the file as UTF-8"
        ) from None
    if not text.strip():
        raise DocumentInvalid("the file is empty", where=where, hint="put the document into it")
    return text


def _neighbour_hint(path: Path) -> str:
    """The nearest file name in the same folder, if there is one."""
    try:
        names = [each.name for each in path.parent.iterdir()][:2000]
    except OSError:
        return f"the folder {path.parent} cannot be read; check the path"
    return did_you_mean(path.name, names, fallback="check the path")
