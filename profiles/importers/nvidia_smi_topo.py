"""``nvidia-smi topo -m``: how the GPUs and NICs of one node are joined.

Recognised by a header of ``GPU0 ...`` and rows of ``X NV# PIX PXB PHB NODE SYS`` cells.  Columns stand apart by tabs or
spaces, the header may be underlined (ANSI), NICs are called ``NIC0`` with a legend, or by device name (``mlx5_0``) in
drivers before 515; ``GPU NUMA ID`` is new since 525.  Shell traces, other tools' text and several nodes' matrices may
stand around.  ``NV18`` between all pairs of eight is an NVSwitch: each GPU's 18 links go to switches.
Speeds are not in it.  Source: the tool's own legend; layouts of drivers 418 to 610.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix, read_matrices
from profiles.importing.log_lines import LogLine, clean_line, log_lines
from profiles.importing.matrix_node import PCI_LINKS, node_of_matrix
from profiles.importing.reported_device import device_of
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import LinkType, NodeTopology, Topology

WORDS = re.compile(r"NV\d+|NODE|SYS|PHB|PXB|PIX|SOC|N/A|X")
_GPU = re.compile(r"GPU\d{1,4}\Z")
_LEGEND = re.compile(r"\s*(NIC\d{1,4})\s*:\s*(\S+)\s*\Z")
_OTHER_TOOLS = re.compile(r"MetaX System Management|mx-smi|MetaXLink|Device link type matrix")


def is_gpu(label: str) -> bool:
    """Whether a column stands for a GPU."""
    return bool(_GPU.match(label))


def link_of(cell: str) -> tuple[LinkType, int | None]:
    """Kind of link and number of NVLinks of one cell."""
    if cell.startswith("NV"):
        return "nvlink", int(cell[2:])
    return PCI_LINKS.get(cell, "unknown"), None


def _matches(head: Head) -> bool:
    """A matrix with GPU columns whose cells are nvidia-smi's words; MetaX prints the same frame with MX cells."""
    if "GPU0" not in head.text or _OTHER_TOOLS.search(head.text):
        return False
    lines = (clean_line(number, text) for number, text in enumerate(head.text.splitlines(), start=1))
    return any(_has_gpu_rows(matrix) for matrix in read_matrices(lines, is_gpu, WORDS))


def _has_gpu_rows(matrix: LinkMatrix) -> bool:
    return any(is_gpu(row.label) and "X" in row.cells for row in matrix.rows)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    imported = Imported(tool="nvidia-smi")
    lines = list(log_lines(file))
    matrices = [each for each in read_matrices(lines, is_gpu, WORDS) if _has_gpu_rows(each)]
    if not matrices:
        raise DocumentInvalid(
            "there is no whole row of a GPU link matrix",
            where=file.where,
            hint="give the output of: nvidia-smi topo -m",
        )
    names = _nic_names(lines)
    device = device_of(options, (line.text for line in lines))
    nodes = [
        node_of_matrix(matrix, is_gpu, link_of, imported, nic_names=names, device_reported=device)
        for matrix in matrices
    ]
    node = _commonest(nodes, imported)
    imported.facts["num_matrices"] = len(nodes)
    imported.topology = Topology(node=node, devices_of_node=(node.num_devices,))
    return imported


def _commonest(nodes: list[NodeTopology], imported: Imported) -> NodeTopology:
    """The kind of node that most matrices show; the others are counted."""
    kinds = Counter(nodes)
    node, count = kinds.most_common(1)[0]
    if len(kinds) > 1:
        imported.flag("nodes-differ", f"{len(nodes)} matrices show {len(kinds)} kinds of node; {count} are as stored")
    return node


def _nic_names(lines: list[LogLine]) -> dict[str, str]:
    """Device names of the NIC legend: used for the kind of NIC, never stored."""
    found: dict[str, str] = {}
    for line in lines:
        match = _LEGEND.match(line.text)
        if match:
            found.setdefault(match.group(1), match.group(2))
    return found


FORMAT = Format(
    name="nvidia-smi-topo", title="nvidia-smi topo -m: links between GPUs and NICs", matches=_matches, read=_read
)
