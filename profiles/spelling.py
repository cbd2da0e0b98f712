"""Which known name did the user mean?"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The closest known name, or None if nothing is close; case and ``_ - . /`` do not count."""
    plain = {_plain(each): each for each in known}
    matches = get_close_matches(_plain(name), plain, n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


def _plain(name: str) -> str:
    return name.casefold().translate(str.maketrans("_-./", "    ")).replace(" ", "")
