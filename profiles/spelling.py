"""The known name that a user meant: the nearest one, or one that differs by a typing slip."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile

SHORTEST_WORD = 4
"""Letters of a word in which one may be wrong: of three (opt, mpt, gpt) each other letter is another model."""

SHORTEST_NAME = 5
"""Letters and digits of a whole name in which one may be wrong: bart, beit and bert are three models."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The closest known name, or None if nothing is close; case and ``_ - . /`` do not count."""
    plain = {_plain(each): each for each in known}
    matches = get_close_matches(_plain(name), plain, n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


def _plain(name: str) -> str:
    return name.casefold().translate(str.maketrans("_-./", "    ")).replace(" ", "")


def typing_slip(name: str, known: Iterable[str]) -> str | None:
    """The known name of which ``name`` is a typing slip, or None: for names of models, where near is not the same.

    Case and ``_ - . /`` do not count; besides, one letter inside a word of four or more, in a name of five or more, may
    be wrong, missing or too many, or two neighbours swapped.  Digits are versions and sizes, and letters at either end
    of a word mark relatives (``gemma3n``, ``mllama``): names that differ there are other models.
    """
    plain = {_plain(each): each for each in known}
    typed = _plain(name)
    if typed in plain:
        return plain[typed]
    slips = [each for each in plain if _one_letter_apart(typed, each)]
    return plain[slips[0]] if len(slips) == 1 else None


def _one_letter_apart(typed: str, known: str) -> bool:
    start = _num_shared(typed, known)
    end = _num_shared(typed[start:][::-1], known[start:][::-1])
    wrong, right = typed[start : len(typed) - end], known[start : len(known) - end]
    swapped = len(wrong) == 2 and wrong == right[::-1]
    if not (swapped or (len(wrong) <= 1 and len(right) <= 1)) or not (wrong + right).isalpha():
        return False
    before = re.search(r"[a-z]*$", known[:start])
    after = re.match(r"[a-z]*", known[len(known) - end :])
    assert before is not None
    assert after is not None
    long_enough = len(known) >= SHORTEST_NAME and len(before[0] + right + after[0]) >= SHORTEST_WORD
    return bool(before[0] and after[0]) and long_enough


def _num_shared(one: str, other: str) -> int:
    """Letters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
