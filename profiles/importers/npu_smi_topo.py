"""``npu-smi info -t topo`` (Huawei Ascend): links between the NPUs of one node.

Recognised by a header of ``NPU0 ...`` or ``Phy-ID0 ...``. ``HCCS`` = direct link (A2: full mesh), ``HCCS_SW`` =
through a switch (A3), ``SIO`` = the two dies of one package, ``UB`` = unified bus (A5), then the PCIe words. NPUs of
a container keep their physical numbers (``Phy-ID12``); they are renumbered from 0. Source: the tool's own legend,
Ascend documentation of npu-smi.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix, read_matrices
from profiles.importing.log_lines import LogLine, clean_line, log_lines
from profiles.importing.matrix_node import PCI_LINKS, node_of_matrix
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import LinkType, NodeTopology, Topology

_WORDS = re.compile(r"HCCS_SW|HCCS|SIO|UB|NODE|SYS|PHB|PXB|PIX|PIB|NA|X")
_NPU = re.compile(r"(?:NPU|Phy-ID)\d{1,5}\Z")
_LINKS: dict[str, LinkType] = {
    "HCCS": "hccs",
    "HCCS_SW": "hccs_switch",
    "SIO": "sio",
    "UB": "ub",
    "PIB": "pcie_bridges",
}
_CHIP = re.compile(r"\bAscend ?(910\w*|310\w*|950\w*)\b")


def _is_npu(label: str) -> bool:
    return bool(_NPU.match(label))


def _link_of(cell: str) -> tuple[LinkType, int | None]:
    return _LINKS.get(cell) or PCI_LINKS.get(cell, "unknown"), None


def _matrices(lines: list[LogLine]) -> list[LinkMatrix]:
    return [each for each in read_matrices(lines, _is_npu, _WORDS) if any(_is_npu(row.label) for row in each.rows)]


def _matches(head: Head) -> bool:
    """A matrix of NPUs."""
    if not re.search(r"\bNPU\d|Phy-ID\d", head.text):
        return False
    lines = [clean_line(number, text) for number, text in enumerate(head.text.splitlines(), start=1)]
    return bool(_matrices(lines))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    lines = list(log_lines(file))
    matrices = _matrices(lines)
    if not matrices:
        raise DocumentInvalid(
            "there is no whole row of an NPU link matrix", where=file.where, hint="give: npu-smi info -t topo"
        )
    imported = Imported(tool="npu-smi")
    device = options.given.get("device") or _mentioned_chip(lines)
    node = node_of_matrix(matrices[0], _is_npu, _link_of, imported, device_reported=device)
    kinds = {pair.link for pair in node.pairs}
    if "hccs_switch" in kinds or "ub" in kinds:
        node = NodeTopology.model_validate({**node.model_dump(), "switched": "hccs_switch" in kinds or None})
    elif "hccs" in kinds:
        node = NodeTopology.model_validate({**node.model_dump(), "switched": False})
    imported.facts["num_matrices"] = len(matrices)
    imported.topology = Topology(node=node, devices_of_node=(node.num_devices,))
    return imported


def _mentioned_chip(lines: list[LogLine]) -> str:
    """``Ascend 910B3`` where npu-smi info or the text around names one chip only."""
    found = {f"Ascend {match.group(1)}" for line in lines for match in _CHIP.finditer(line.text)}
    return next(iter(found)) if len(found) == 1 else ""


FORMAT = Format(name="npu-smi-topo", title="npu-smi info -t topo: Ascend NPU links", matches=_matches, read=_read)
