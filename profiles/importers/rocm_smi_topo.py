"""``rocm-smi --showtopo``: weight, hops, link type and NUMA node of the AMD GPUs of one node.

Recognised by the banner ``Link Type between two GPUs`` (or one of the other matrices). Four blocks: ``Weight``,
``Hops`` (matrices of numbers), ``Link Type`` (``XGMI``/``PCIE``, 0 on the diagonal) and ``Numa Nodes`` (``GPU[0] :
(Topology) Numa Node: 0``; older without ``(Topology)``, or ``GPU 0``). The text may be embedded in documents or
programs. An XGMI pair more than one hop apart is reached through another GPU.
Source: ROCm/rocm_smi_lib rocm_smi.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importers.nvidia_smi_topo import is_gpu
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix, read_matrices
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.reported_device import device_of
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import DevicePair, LinkType, NodeTopology, Topology

_TITLE = re.compile(r"(Weight|Hops|Link Type|Link accessibility) between (?:two )?GPUs", re.IGNORECASE)
_NUMA = re.compile(r"GPU ?\[?(\d{1,4})\]?\s*:\s*(?:\(Topology\) )?Numa Node:\s*(-?\d{1,5})", re.IGNORECASE)
_WORDS = re.compile(r"XGMI|PCIE|N/A|True|False|\d{1,9}", re.IGNORECASE)
_LINKS: dict[str, LinkType] = {"XGMI": "xgmi", "PCIE": "system"}


@dataclass(slots=True)
class _Blocks:
    """The matrices of one report by title."""

    found: dict[str, LinkMatrix] = field(default_factory=dict)
    numa: dict[int, int] = field(default_factory=dict)


def _matches(head: Head) -> bool:
    """The title of one of the matrices, and a row of GPU0 below."""
    return bool(_TITLE.search(head.text)) and bool(re.search(r"^[ \t>|#]*GPU0[ \t]+\S", head.text, re.MULTILINE))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    lines = list(log_lines(file))
    blocks = _blocks(lines)
    if "link type" not in blocks.found and "hops" not in blocks.found:
        raise DocumentInvalid(
            "there is no matrix of link types", where=file.where, hint="give the output of: rocm-smi --showtopo"
        )
    imported = Imported(tool="rocm-smi")
    kinds = blocks.found.get("link type")
    matrix = kinds or blocks.found["hops"]
    devices = [label for label in matrix.columns if is_gpu(label)]
    for each in blocks.found.values():
        for line, what in each.short_rows:
            imported.bad(line, what, "copy the whole matrix")
    pairs = _pairs(devices, blocks, imported)
    if len(matrix.rows) < len(devices):
        what = f"only {len(matrix.rows)} of {len(devices)} rows are here"
        imported.bad(matrix.line, what, "copy the whole matrix")
    if kinds is None:
        imported.flag("no-link-type", "the matrix of link types is missing: how the GPUs are joined is unknown")
    numa = tuple(_positive(blocks.numa.get(int(label[3:]))) for label in devices)
    known = {node for node in numa if node is not None}
    node = NodeTopology(
        num_devices=len(devices),
        device_reported=device_of(options, (line.text for line in lines)),
        pairs=tuple(pairs),
        numa_node_of_device=numa if known else (),
        num_numa_nodes=len(known) if known and None not in numa else None,
        switched=False if any(pair.link == "xgmi" for pair in pairs) else None,
    )
    imported.topology = Topology(node=node, devices_of_node=(len(devices),))
    return imported


def _blocks(lines: list[LogLine]) -> _Blocks:
    """Each matrix under the title that stands nearest above it; of several reports the first."""
    blocks = _Blocks()
    titles = [(line.number, title) for line in lines if (title := _title(line.text))]
    for matrix in read_matrices(lines, is_gpu, _WORDS):
        above = [title for number, title in titles if number < matrix.line]
        if above and matrix.rows:
            blocks.found.setdefault(above[-1], matrix)
    for line in lines:
        match = _NUMA.search(line.text)
        if match:
            blocks.numa.setdefault(int(match.group(1)), int(match.group(2)))
    return blocks


def _title(text: str) -> str:
    match = _TITLE.search(text)
    return match.group(1).casefold() if match else ""


def _pairs(devices: list[str], blocks: _Blocks, imported: Imported) -> list[DevicePair]:
    pairs: list[DevicePair] = []
    for first, label in enumerate(devices):
        for second in range(first + 1, len(devices)):
            cells = {name: matrix.cell(label, devices[second]) for name, matrix in blocks.found.items()}
            kind = (cells.get("link type") or "").upper()
            link: LinkType = _LINKS.get(kind, "unknown")
            hops = cells.get("hops")
            if link == "xgmi" and hops is not None and hops.isdigit() and int(hops) > 1:
                link = "system"
                imported.facts["xgmi_pairs_several_hops"] = int(imported.facts.get("xgmi_pairs_several_hops", 0)) + 1
            reported = kind if hops in (None, "1") else f"{kind} {hops} hops".strip()
            pairs.append(DevicePair(first=first, second=second, link=link, reported=reported))
    return pairs


def _positive(node: int | None) -> int | None:
    return node if node is not None and node >= 0 else None


FORMAT = Format(name="rocm-smi-topo", title="rocm-smi --showtopo: AMD GPU links", matches=_matches, read=_read)
