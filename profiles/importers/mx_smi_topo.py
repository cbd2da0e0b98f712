"""``mx-smi topo -m`` / ``-n`` (MetaX): links between the GPUs of one node, and NICs with ``-n``.

Recognised by MetaX's banner, legend or ``MX`` cells in a GPU matrix.  ``MX`` = MetaXLink, ``ETH`` = Ethernet; the PCIe
words are nvidia-smi's.  Trailing columns are ``Node Affinity`` (NUMA) and ``CPU Affinity``, in that order.
Source: the tool's own legend (mx-smi 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.nvidia_smi_topo import is_gpu
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix, read_matrices
from profiles.importing.log_lines import LogLine, clean_line, log_lines
from profiles.importing.matrix_node import PCI_LINKS, node_of_matrix
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import LinkType, Topology

_WORDS = re.compile(r"MX\d*|ETH|NODE|SYS|PHB|PXB|PIX|NA|X")
_BANNER = re.compile(r"MetaX System Management|\bmx-smi\b|MetaXLink", re.IGNORECASE)
_VERSION = re.compile(r"mx-smi\s+version\s*:\s*([\w.]+)")


def _link_of(cell: str) -> tuple[LinkType, int | None]:
    if cell.startswith("MX"):
        return "metaxlink", int(cell[2:]) if cell[2:] else None
    if cell == "ETH":
        return "ethernet", None
    return PCI_LINKS.get(cell, "unknown"), None


def _matrices(lines: list[LogLine]) -> list[LinkMatrix]:
    return [each for each in read_matrices(lines, is_gpu, _WORDS) if any(is_gpu(row.label) for row in each.rows)]


def _matches(head: Head) -> bool:
    """A GPU matrix below MetaX's banner, or with MetaXLink cells."""
    if "GPU0" not in head.text:
        return False
    banner = bool(_BANNER.search(head.text))
    lines = [clean_line(number, text) for number, text in enumerate(head.text.splitlines(), start=1)]
    return any(
        banner or any(cell.startswith("MX") for row in matrix.rows for cell in row.cells) for matrix in _matrices(lines)
    )


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    lines = list(log_lines(file))
    matrices = _matrices(lines)
    if not matrices:
        raise DocumentInvalid(
            "there is no whole row of a GPU link matrix", where=file.where, hint="give the output of: mx-smi topo -m"
        )
    version = next((match.group(1) for line in lines if (match := _VERSION.search(line.text))), "")
    imported = Imported(tool="mx-smi", tool_version=version)
    widest = max(matrices, key=lambda matrix: len(matrix.columns))
    node = node_of_matrix(widest, is_gpu, _link_of, imported, device_reported=options.given.get("device", ""))
    imported.facts["num_matrices"] = len(matrices)
    imported.topology = Topology(node=node, devices_of_node=(node.num_devices,))
    return imported


FORMAT = Format(name="mx-smi-topo", title="mx-smi topo: MetaX GPU links", matches=_matches, read=_read)
