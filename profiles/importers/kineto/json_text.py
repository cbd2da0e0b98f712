"""A decoder for JSON texts of any size: fast, with one clear error that names the byte.

PyTorch's own writers make invalid JSON in known ways, which are repaired before a second try: bare backslashes and
control characters in names, ``nan`` and ``inf`` as numbers (they become null), bytes that are not UTF-8.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from profiles.errors import DocumentInvalid

_BYTE = re.compile(r"\s*\(byte (\d+)\)")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BARE_BACKSLASH = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_A_NUMBER = re.compile(rb"([:\[,]\s*)[-+]?(?:nan|inf|infinity)(?:\(ind\))?(?=\s*[,}\]])", re.IGNORECASE)


def decoded(content: bytes, where: str) -> Any:
    """The plain data.  Raises DocumentInvalid."""
    if not content.strip():
        raise DocumentInvalid("the file is empty", where=where, hint="check that the tool wrote to it")
    try:
        return _decode_or_repair(without_mark(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        text = str(error)
        if "truncated" in text:
            at = f"{where}:byte {len(content)}"
            what = f"the file breaks off at byte {len(content):,}"
            raise DocumentInvalid(what, where=at, hint="copy or write it again") from None
        found = _BYTE.search(text)
        at = f"{where}:byte {found.group(1)}" if found else where
        what = "nested too deeply" if isinstance(error, RecursionError) else _BYTE.sub("", text)
        raise DocumentInvalid(f"not valid JSON: {what}", where=at, hint="write the file again") from None


def without_mark(content: bytes) -> bytes:
    """UTF-8 without a byte order mark; text that its mark shows to be UTF-16 is converted."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace").encode()
    return content.removeprefix(b"\xef\xbb\xbf")


def repaired_json(raw: bytes) -> bytes:
    """The text with the known mistakes corrected; the same object where there is none."""
    text = raw if _is_utf8(raw) else raw.decode("utf-8", errors="replace").encode()
    text = _BARE_BACKSLASH.sub(lambda match: match.group() if match.group(1) else b"\\\\", text)
    text = _STRING.sub(lambda match: _CONTROL.sub(b" ", match.group()), text)
    # Twice: neighbours in a list share the comma.
    return _NOT_A_NUMBER.sub(rb"\1null", _NOT_A_NUMBER.sub(rb"\1null", text))


def _decode_or_repair(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "truncated" in str(error):
            raise
        return msgspec.json.decode(repaired_json(content))


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
