"""Slurm's hostlist expressions, such as ``a[01-16,20]b,c3``, expanded in order.

Several brackets in one name multiply (``r[1-2]n[0-3]``); numbers keep the width of the lower end.  Sets of lists
(``node[1-3,5]``) and commas outside brackets are both separators.  Source: SchedMD/slurm, src/common/hostlist.c
(behaviour described in the manual page topology.conf(5)).
"""

from __future__ import annotations

import re
from itertools import product

from profiles.errors import DocumentInvalid

MAX_HOSTS = 200_000
"""More hosts than this in one expression are refused: Slurm's own limit for one range is 65,536."""
_HINT = "write it like node[01-16,20] with low-high ranges"
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?\Z")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def expand_hostlist(text: str, where: str) -> list[str]:
    """Names in the order of the expression, duplicates kept.  Raises DocumentInvalid."""
    hosts: list[str] = []
    for item in _split(text, where):
        hosts += _expand_one(item, where, MAX_HOSTS - len(hosts))
    return hosts


def _split(text: str, where: str) -> list[str]:
    """Items between commas that stand outside brackets."""
    items: list[str] = []
    depth, start = 0, 0
    for index, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:index])
            start = index + 1
        if depth not in (0, 1):
            break
    if depth:
        raise _broken("brackets do not match", text, where)
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()]


def _expand_one(item: str, where: str, room: int) -> list[str]:
    parts = _BRACKETS.split(item)
    if any(character in part for part in parts[::2] for character in "[] \t"):
        raise _broken("brackets or spaces", item, where)
    choices: list[list[str]] = []
    total = 1
    for index, part in enumerate(parts):
        choices.append([part] if index % 2 == 0 else _numbers(part, item, where))
        total *= len(choices[-1])
        if total > room:
            raise _broken(f"more than {MAX_HOSTS:,} hosts", item, where)
    return ["".join(each) for each in product(*choices)]


def _numbers(inside: str, item: str, where: str) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        match = _RANGE.match(part.strip())
        if not match:
            raise _broken(f"{part[:40]!r} is no range of numbers", item, where)
        low, high = match.group(1), match.group(2) or match.group(1)
        if int(high) < int(low) or int(high) - int(low) >= MAX_HOSTS:
            raise _broken(f"{part[:40]!r} is no rising range of hosts", item, where)
        numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return numbers


def _broken(why: str, text: str, where: str) -> DocumentInvalid:
    return DocumentInvalid(f"{why} in {text[:60]!r}", where=where, hint=_HINT)
