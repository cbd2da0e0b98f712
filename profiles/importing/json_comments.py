"""JSON without comments: ``//`` and ``/* */`` outside strings become spaces; lines keep their numbers.

Huawei's published rank tables are full of them.  One pass, linear in the length of the text.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def strip_json_comments(text: str) -> str:
    """The text with comments blanked out."""
    return _TOKEN.sub(_blank_if_comment, text)


def _blank_if_comment(match: re.Match[str]) -> str:
    token = match.group()
    if token.startswith('"'):
        return token
    return re.sub(r"[^\n]", " ", token)
