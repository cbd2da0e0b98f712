"""Lines of Slurm's ``topology.conf`` and of ``scontrol show topology``: their settings, and the switches they describe.

``SwitchName=leaf1 Nodes=n[001-032]`` and ``SwitchName=spine1 Switches=leaf[1-4]``; keys in any case, values bare or
quoted (topology.conf(5), Slurm 22.05).
"""

from __future__ import annotations

import re

from profiles.importing.hostlist import expand_hostlist
from profiles.importing.switch_tree import SwitchTree

_PAIR = re.compile(r"(?<!\w)([A-Za-z]\w{0,40})\s{0,9}=\s{0,9}(\"[^\"]*\"|'[^']*'|\S+)")


def settings_of(line: str) -> dict[str, str]:
    """``Key=value`` pairs of a line without its comment; the keys in small letters."""
    return {key.casefold(): value.strip("\"'") for key, value in _PAIR.findall(line)}


def add_switch(tree: SwitchTree, settings: dict[str, str], where: str) -> None:
    """Hang up what a line with ``SwitchName`` says is below it.  Raises DocumentInvalid for a broken list of names."""
    switches = expand_hostlist(settings.get("switches", ""), where)
    # scontrol repeats all nodes at every level; what hangs below child switches is theirs.
    nodes = [] if switches else expand_hostlist(settings.get("nodes", ""), where)
    tree.add(settings["switchname"], switches=switches, nodes=nodes)
