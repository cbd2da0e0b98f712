"""``nvidia-smi topo -p2p r|w|n|a|p``: which GPU pairs can reach each other's memory; a capability, not a speed.

Recognised by a GPU matrix of ``OK NS CNS GNS TNS DR U`` cells.  Anything but ``OK`` means that NCCL stages transfers
between the two through host memory.  A file may hold several matrices (read, write, atomics, NVLink); a pair counts as
reachable when read and write are both OK, and each matrix is told apart only by the words around it.  When a ``topo
-m`` matrix stands in the same file, its links are kept and the capability is added as facts and flags.
Source: the tool's own legend.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.nvidia_smi_topo import FORMAT as TOPO_M
from profiles.importers.nvidia_smi_topo import is_gpu
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix, read_matrices
from profiles.importing.log_lines import LogLine, clean_line, log_lines
from profiles.importing.reported_device import device_of
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import DevicePair, NodeTopology, Topology

_WORDS = re.compile(r"OK|CNS|GNS|TNS|NS|DR|U|X")
_STATES = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
_CAPABILITY = re.compile(r"topo\s+(?:-p2p|--p2p_status)[ =]?([rwnap]{1,5})\b")
_NAMES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "pcie"}


def _matches(head: Head) -> bool:
    """A GPU matrix with capability words in it."""
    if "GPU0" not in head.text:
        return False
    lines = [clean_line(number, text) for number, text in enumerate(head.text.splitlines(), start=1)]
    return bool(_matrices(lines))


def _matrices(lines: list[LogLine]) -> list[LinkMatrix]:
    found = read_matrices(lines, is_gpu, _WORDS)
    return [each for each in found if any(cell in _STATES for row in each.rows for cell in row.cells)]


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    lines = list(log_lines(file))
    matrices = _matrices(lines)
    if not matrices:
        raise DocumentInvalid(
            "there is no whole row of a peer-to-peer matrix",
            where=file.where,
            hint="give the output of: nvidia-smi topo -p2p r",
        )
    try:
        imported = TOPO_M.read(files, options)
    except DocumentInvalid:
        imported = Imported(tool="nvidia-smi")
    imported.facts["num_p2p_matrices"] = len(matrices)
    blocked: set[tuple[int, int]] = set()
    for index, matrix in enumerate(matrices):
        blocked |= _blocked_pairs(matrix, _capability(lines, matrix, index), imported)
    if imported.topology is None:
        gpus = [label for label in matrices[0].columns if is_gpu(label)]
        device = device_of(options, (line.text for line in lines))
        node = NodeTopology(num_devices=len(gpus), device_reported=device, pairs=_pairs(len(gpus), blocked))
        imported.topology = Topology(node=node, devices_of_node=(len(gpus),))
    if blocked:
        imported.flag("host-staged", f"{len(blocked)} GPU pairs cannot reach each other: transfers go through the host")
    return imported


def _pairs(num_devices: int, blocked: set[tuple[int, int]]) -> tuple[DevicePair, ...]:
    return tuple(
        DevicePair(
            first=first,
            second=second,
            link="system" if (first, second) in blocked else "unknown",
            reported="NS" if (first, second) in blocked else "OK",
        )
        for first in range(num_devices)
        for second in range(first + 1, num_devices)
    )


def _capability(lines: list[LogLine], matrix: LinkMatrix, index: int) -> str:
    """What the matrix is about, from the command above it; ``matrix 1`` where no command is printed."""
    for line in reversed(lines[: matrix.line - 1][-6:]):
        match = _CAPABILITY.search(line.text)
        if match:
            return "_".join(_NAMES[letter] for letter in match.group(1))
    return f"matrix_{index + 1}"


def _blocked_pairs(matrix: LinkMatrix, capability: str, imported: Imported) -> set[tuple[int, int]]:
    """Pairs that are not OK; for capabilities other than NVLink and atomics they count as blocked."""
    gpus = [label for label in matrix.columns if is_gpu(label)]
    for line, what in matrix.short_rows:
        imported.bad(line, what, "copy the whole matrix")
    if len(matrix.rows) < len(gpus):
        what = f"only {len(matrix.rows)} of {len(gpus)} rows are here"
        imported.bad(matrix.line, what, "copy the whole matrix")
    states: dict[str, int] = {}
    blocked: set[tuple[int, int]] = set()
    for row in matrix.rows:
        if not is_gpu(row.label):
            continue
        for column, cell in zip(matrix.columns, row.cells, strict=True):
            if cell == "X" or not is_gpu(column):
                continue
            states[cell] = states.get(cell, 0) + 1
            if cell not in ("OK", "U"):
                blocked.add(_pair(gpus.index(row.label), gpus.index(column)))
    for state, count in sorted(states.items()):
        imported.facts[f"p2p_{capability}_{state.lower()}"] = count
    return blocked if capability not in ("nvlink", "atomics", "pcie") else set()


def _pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


FORMAT = Format(
    name="nvidia-smi-topo-p2p", title="nvidia-smi topo -p2p: which GPUs reach each other", matches=_matches, read=_read
)
