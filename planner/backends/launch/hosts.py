"""The order of the nodes in the fabric: from a hosts file, one name a line, or a Slurm topology.

Accepted lines: ``name``, a Slurm host list ``rack1-n[000-031,040]``, an Open MPI hostfile line ``name slots=8``, and
``SwitchName=...`` lines of ``topology.conf`` or of ``scontrol show topology``.  With switches, the leaves are walked in
the order of the tree, so nodes of one leaf switch are neighbours (topology.conf(5), Slurm 22.05).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from planner.errors import DocumentInvalid

MOST_HOSTS = 100_000
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_HINT = "one host name a line in the fabric's order, or the text of `scontrol show topology`"


def load_hosts(path: Path) -> tuple[str, ...]:
    """The hosts of a file.  Raises DocumentInvalid."""
    where = f"--hosts {path}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentInvalid(f"cannot read the hosts: {error}", where=where, hint=_HINT) from error
    hosts = read_hosts(text, where)
    if not hosts:
        raise DocumentInvalid("the file names no hosts", where=where, hint=_HINT)
    return hosts


def read_hosts(text: str, where: str = "--hosts") -> tuple[str, ...]:
    """Host names in order.  Raises DocumentInvalid with every bad line and every host that is named twice."""
    lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, line) for number, line in lines if line]
    if any(line.startswith("SwitchName=") for _, line in lines):
        hosts = _switch_order([line for _, line in lines], where)
    else:
        hosts = [host for number, line in lines for host in _host_line(line, f"{where} line {number}")]
    problems = [f"{host!r} is no host name" for host in hosts if not _HOST.fullmatch(host)]
    seen: set[str] = set()
    problems += [f"{host} is named twice" for host in hosts if host in seen or seen.add(host)]  # type: ignore[func-returns-value]
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DocumentInvalid("; ".join(dict.fromkeys(problems[:5])) + more, where=where, hint=_HINT)
    return tuple(hosts)


def expand(text: str, where: str = "--hosts") -> list[str]:
    """``a[01-03],b`` -> a01, a02, a03, b.  Raises DocumentInvalid."""
    hosts: list[str] = []
    for part in _parts(text, where):
        hosts += _expand_part(part, where)
        if len(hosts) > MOST_HOSTS:
            raise DocumentInvalid(f"more than {MOST_HOSTS} hosts", where=where, hint=_HINT)
    return hosts


def _host_line(line: str, where: str) -> list[str]:
    name, *words = line.split()
    strange = [word for word in words if not re.fullmatch(r"(slots|max_slots|max-slots)=\d+", word)]
    if strange:
        raise DocumentInvalid(f"unexpected {strange[0]!r} after the host {name}", where=where, hint=_HINT)
    return expand(name, where)


def _parts(text: str, where: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            break
        if letter == "," and depth == 0:
            yield part
            part = ""
        else:
            part += letter
    if depth != 0:
        raise DocumentInvalid(f"brackets do not match in {text!r}", where=where, hint=_HINT)
    yield part


def _expand_part(part: str, where: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    names = []
    for piece in inside.split(","):
        found = _RANGE.fullmatch(piece)
        if not found:
            raise DocumentInvalid(f"{piece!r} is no range of numbers in {part!r}", where=where, hint=_HINT)
        low, high = found[1], found[2] or found[1]
        if int(high) < int(low) or int(high) - int(low) >= MOST_HOSTS:
            raise DocumentInvalid(f"{piece!r} is no rising range of hosts in {part!r}", where=where, hint=_HINT)
        names += [f"{head}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return [name + after for name in names for after in (_expand_part(tail, where) if tail else [""])]


def _switch_order(lines: list[str], where: str) -> list[str]:
    """Nodes of the leaves, the tree walked from its roots in the order of the file."""
    leaves: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    for line in lines:
        fields = dict(word.partition("=")[::2] for word in line.split())
        if "SwitchName" not in fields:
            raise DocumentInvalid(f"{line!r} stands among switches and names none", where=where, hint=_HINT)
        name = fields["SwitchName"]
        # `scontrol show topology` lists the nodes below a spine too; only a leaf has nodes of its own.
        if fields.get("Switches"):
            children[name] = expand(fields["Switches"], where)
        else:
            leaves[name] = expand(fields["Nodes"], where) if fields.get("Nodes") else []
    below = {child for each in children.values() for child in each}
    hosts: list[str] = []
    walked: set[str] = set()
    waiting = [name for name in reversed([*children, *leaves]) if name not in below]
    while waiting:
        name = waiting.pop()
        if name in walked:
            continue
        walked.add(name)
        hosts += leaves.get(name, [])
        waiting += reversed(children.get(name, []))
    missed = [name for name in (*children, *leaves) if name not in walked]
    if missed:
        raise DocumentInvalid(f"the switches {', '.join(missed[:5])} form a ring", where=where, hint=_HINT)
    return hosts
