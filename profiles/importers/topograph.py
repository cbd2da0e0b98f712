"""Topograph's cluster models (YAML): switches, blocks of nodes, accelerator domains.

Recognised by top-level ``switches:`` and ``blocks:`` (or ``capacity_blocks:`` before 2026). New form: ``switches:
{core: {switches: [...]}}``, ``blocks: [{switch, nodes, labels | annotations}]`` where a label ending in
``accelerator``, ``domain`` or ``level-0`` names the NVLink domain and one ending in ``sub-domain`` a part of it. Old
form: lists of ``{name, switches, capacity_blocks}`` and ``{name, type, nvlink, nodes}``. Source: NVIDIA/topograph,
tests/models and pkg/models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.hostlist import expand_hostlist
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.switch_tree import SwitchTree, irregularities
from profiles.safe_yaml import load_yaml_text
from profiles.text_limits import MAX_DOCUMENT_BYTES
from profiles.topology import NetworkTier, Topology

_SWITCHES = re.compile(r"^switches:[ \t]*(?:#.*)?$", re.MULTILINE)
_BLOCKS = re.compile(r"^(?:capacity_)?blocks:[ \t]*(?:#.*)?$", re.MULTILINE)
_PART = re.compile(r"(?:sub-?domain|segment)\Z", re.IGNORECASE)
_DOMAIN = re.compile(r"(?:accelerator|domain|level-0|nvlink|clique)\Z", re.IGNORECASE)
_TYPES = frozenset({"A100", "H100", "H200", "B200", "B300", "GB200", "GB300"})


@dataclass(slots=True)
class _Domains:
    """Nodes of each accelerator domain and of each part of one."""

    whole: dict[str, list[str]] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)


def _matches(head: Head) -> bool:
    """Both top-level lists."""
    return bool(_SWITCHES.search(head.text) and _BLOCKS.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    data = load_yaml_text(file.text(MAX_DOCUMENT_BYTES), file.where)
    blocks = _list(data, "blocks") or _list(data, "capacity_blocks")
    if not blocks:
        raise DocumentInvalid("there are no blocks of nodes", where=file.where, hint="give blocks: with nodes")
    imported = Imported(tool="topograph")
    tree, domains = SwitchTree(), _Domains()
    holders = _add_switches(data, tree, file.where)
    for index, block in enumerate(blocks):
        nodes = _nodes(block, f"{file.where}#/blocks/{index}", imported)
        switch = block.get("switch") or holders.get(str(block.get("name", "")))
        tree.add(str(switch) if switch else f"block {index}", nodes=nodes)
        _add_domains(block, nodes, domains)
    types = {str(block["type"]) for block in blocks if block.get("type")}
    if len(types) == 1 and types <= _TYPES:
        imported.facts["device_type"] = next(iter(types))
    tiers, irregular = tree.tiers(file.where)
    inner, notes = _domain_tiers(domains, tree)
    imported.topology = Topology(num_nodes=len(tree.numbers), tiers=(*inner, *tiers), irregular=(*notes, *irregular))
    return imported


def _list(data: Any, key: str) -> list[dict[str, Any]]:
    found = data.get(key) if isinstance(data, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _add_switches(data: dict[str, Any], tree: SwitchTree, where: str) -> dict[str, str]:
    """Switches of both forms; returns which switch holds a capacity block (old form)."""
    switches = data.get("switches")
    if isinstance(switches, dict):
        named = [(str(name), entry) for name, entry in switches.items() if isinstance(entry, dict)]
    else:
        named = [(str(entry.get("name", "")), entry) for entry in _list(data, "switches")]
    holders: dict[str, str] = {}
    for name, entry in named:
        children = entry.get("switches") or []
        if not isinstance(children, list):
            raise DocumentInvalid(f"switches of '{name[:40]}' is no list", where=where, hint="list the child switches")
        tree.add(name, switches=[host for child in children for host in expand_hostlist(str(child), where)])
        for block in entry.get("capacity_blocks") or []:
            holders[str(block)] = name
    return holders


def _nodes(block: dict[str, Any], where: str, imported: Imported) -> list[str]:
    value = block.get("nodes")
    texts = value if isinstance(value, list) else [value] if value else []
    try:
        return [host for text in texts for host in expand_hostlist(str(text), where)]
    except DocumentInvalid as error:
        imported.bad(where, error.what, error.hint or "")
        return []


def _add_domains(block: dict[str, Any], nodes: list[str], domains: _Domains) -> None:
    labels: dict[str, Any] = {}
    for key in ("labels", "annotations"):
        if isinstance(block.get(key), dict):
            labels |= block[key]
    if block.get("nvlink"):
        labels["nvlink"] = block["nvlink"]
    for key, value in labels.items():
        if _PART.search(key):
            domains.parts.setdefault(str(value), []).extend(nodes)
        elif _DOMAIN.search(key):
            domains.whole.setdefault(str(value), []).extend(nodes)


def _domain_tiers(domains: _Domains, tree: SwitchTree) -> tuple[list[NetworkTier], list[str]]:
    """The NVLink domains as the innermost tiers; parts of a domain stand below it as blocks."""
    tiers: list[NetworkTier] = []
    notes: list[str] = []
    if domains.parts:
        tiers.append(NetworkTier(name="sub-domain", groups=_groups(domains.parts, tree), kind="block"))
    if domains.whole:
        groups = _groups(domains.whole, tree)
        tiers.append(NetworkTier(name="accelerator", groups=groups, kind="scale_up"))
        notes = irregularities("accelerator", groups, len(tree.numbers))
    return tiers, notes


def _groups(named: dict[str, list[str]], tree: SwitchTree) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted({tree.numbers[node] for node in nodes})) for nodes in named.values() if nodes)


FORMAT = Format(name="topograph", title="Topograph cluster model (YAML)", matches=_matches, read=_read)
