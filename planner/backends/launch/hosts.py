"""The order of the nodes in the fabric: from a hosts file, one name a line, or a Slurm topology.

Accepted lines: ``name``, a Slurm host list ``rack1-n[000-031,040]``, an Open MPI hostfile line ``name slots=8``, and
``SwitchName=...`` lines of ``topology.conf`` or of ``scontrol show topology``.  With switches, the leaves are walked in
the order of the tree, so nodes of one leaf switch are neighbours (topology.conf(5), Slurm 22.05).
"""

from __future__ import annotations

import re
from pathlib import Path

from planner.errors import DocumentInvalid
from profiles.importing.hostlist import expand_hostlist
from profiles.importing.slurm_switches import add_switch, settings_of
from profiles.importing.switch_tree import SwitchTree

_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*")
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


def _host_line(line: str, where: str) -> list[str]:
    name, *words = line.split()
    strange = [word for word in words if not re.fullmatch(r"(slots|max_slots|max-slots)=\d+", word)]
    if strange:
        raise DocumentInvalid(f"unexpected {strange[0]!r} after the host {name}", where=where, hint=_HINT)
    return expand_hostlist(name, where)


def _switch_order(lines: list[str], where: str) -> list[str]:
    """Nodes of the leaves, the tree walked from its roots in the order of the file."""
    tree = SwitchTree()
    for line in lines:
        settings = settings_of(line)
        if "switchname" not in settings:
            raise DocumentInvalid(f"{line!r} stands among switches and names none", where=where, hint=_HINT)
        add_switch(tree, settings, where)
    return tree.node_names(where)
