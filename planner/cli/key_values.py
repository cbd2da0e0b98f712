"""What a flag says: words ``NAME=VALUE``, the text of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from planner.errors import DocumentInvalid


def key_values(
    words: Iterable[str], flag: str, hint: str, *, switches: Collection[str] = (), dashes: bool = False
) -> dict[str, str]:
    """What the words say, in their order; a name of ``switches`` without a value is ``true``.

    ``dashes``: a name may be written with - in place of _.  Raises DocumentInvalid for a word of another form, and for
    a name that is given two values.
    """
    said: dict[str, str] = {}
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        name = name.replace("-", "_") if dashes else name
        if not name or not (equals or name in switches):
            raise DocumentInvalid(f"{word.strip()!r} is not NAME=VALUE", where=flag, hint=hint)
        value = value if equals else "true"
        if said.setdefault(name, value) != value:
            raise DocumentInvalid(f"{name} is given twice", where=flag, hint=hint)
    return said


def file_text(path: Path, flag: str, hint: str) -> str:
    """The text of a file that a flag names.  Raises DocumentInvalid where it cannot be read as UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DocumentInvalid(f"the file cannot be read: {reason}", where=f"{flag} {path}", hint=hint) from None
