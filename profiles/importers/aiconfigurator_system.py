"""AIConfigurator's system files (YAML): constants of one machine; nothing in them was measured.

Recognised by ``data_dir:``, ``gpu:`` and ``node:``.  Bandwidths are bytes a second and device, one way; capacities
bytes; latencies seconds.  Everything becomes facts, flag ``not-measured`` (some are marked there as corrections by
feeling), and the node becomes a topology: devices, host link, and the scale-up domain where racks are one
(``num_gpus_per_rack`` with the same bandwidth inside and between nodes).

Source: ai-dynamo/aiconfigurator aic-core/src/aiconfigurator_core/systems/*.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import json_number, json_whole
from profiles.importing.source_file import Head, SourceFile
from profiles.safe_yaml import load_yaml_text
from profiles.topology import NodeTopology, Topology

_KEYS = (
    re.compile(r"^data_dir:", re.MULTILINE),
    re.compile(r"^gpu:", re.MULTILINE),
    re.compile(r"^node:", re.MULTILINE),
)
_NUMBER_KEY = re.compile(r"^( *)(\d{1,9}):", re.MULTILINE)
_DEEPEST = 6


def _matches(head: Head) -> bool:
    return all(pattern.search(head.text) for pattern in _KEYS)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("aiconfigurator")
    for file in files:
        data = load_yaml_text(_NUMBER_KEY.sub(r'\1"\2":', file.text()), file.where)
        node = data.get("node") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(node, dict):
            raise DocumentInvalid("there is no node section", where=file.where, hint="give a systems/*.yaml file")
        for name, value in _leaves(data, "", 0):
            if isinstance(value, (str, int, float, bool)):
                imported.facts[name] = value if not isinstance(value, str) else value[:120]
        reported = str(data.get("data_dir", "")).rstrip("/").rpartition("/")[2][:60]
        imported.facts["device"] = options.given.get("device") or catalogue_device(reported) or ""
        imported.topology = _topology(node, reported, file)
    imported.flag("not-measured", "all numbers are constants of AIConfigurator: data sheets and corrections by feeling")
    return imported


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{str(key)[:60]}" if name else str(key)[:60], depth + 1)
    else:
        yield name, value


def _topology(node: dict[str, Any], reported: str, file: SourceFile) -> Topology:
    """The node.  Raises DocumentInvalid for impossible numbers."""
    try:
        devices = json_whole(node.get("num_gpus_per_node"))
        host = json_number(node["pcie_bw"]) if "pcie_bw" in node else None
        rack = json_whole(node["num_gpus_per_rack"]) if "num_gpus_per_rack" in node else None
        if devices < 1 or (host is not None and host <= 0) or (rack is not None and rack < 1):
            raise ValueError("devices and bandwidths are larger than zero")
    except ValueError as error:
        raise DocumentInvalid(
            f"the node section cannot be used: {error}", where=f"{file.where}#/node", hint="repair it"
        ) from None
    joined = rack is not None and node.get("inter_node_bw") == node.get("intra_node_bw")
    return Topology(
        node=NodeTopology(num_devices=devices, device_reported=reported, host_link_bandwidth_bytes_per_s=host),
        scale_up_domain_size=rack if joined else None,
    )


FORMAT = Format("aiconfigurator-system", "AIConfigurator system files (systems/*.yaml)", _matches, _read)
