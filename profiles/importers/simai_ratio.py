"""SimAI efficiency tables (``nic_ratio.csv``, ``nvlink_ratio.csv``, ``ata_ratio.csv``): size x nodes -> efficiency.

Recognised by a header that begins with ``Size`` and names ``(NVLinkx)`` and ``(NIC)`` columns, in English
(``2Node-16GPU(NIC )``) or Chinese.  Cells: bus bandwidth over line rate; empty = not measured.  ``ata`` is for
all_to_all, the others for all_gather and reduce_scatter.
An efficiency alone is no measurement: the line rates have to be given (``--set line_rate_bytes_per_s='400 Gbit/s'``
for the NIC columns, ``--set nvlink_rate_bytes_per_s='450 GB/s'`` for the NVLink column); then each cell is a link.
Source: aliyun/SimAI astra-sim-alibabacloud/inputs/ratio/*.csv, workload/Layer.cc (getValue, cal_ratio).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.environments import Batches, environment_of, finished, given_bytes_per_s
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkObservation, Scalar

_NODES = re.compile(r"^(?:(\d{1,6})\s*(?:Node|\u673a)|(\u5355\u673a))", re.IGNORECASE)
_DEVICES = re.compile(r"(\d{1,7})\s*(?:GPU|\u5361)", re.IGNORECASE)
_HINT = "give the line rate: --set line_rate_bytes_per_s='400 Gbit/s' (NIC), --set nvlink_rate_bytes_per_s='450 GB/s'"


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    num_nodes: int
    num_devices: int | None
    inside: bool


def matches(head: Head) -> bool:
    """Whether the header is that of a ratio table."""
    rows = head_rows(head)
    if not rows or rows[0][0] != "Size":
        return False
    names = " ".join(rows[0])
    return "(NVLinkx)" in names and "(NIC" in names


def _column(name: str) -> _Column | None:
    nodes = _NODES.match(name)
    if nodes is None:
        return None
    devices = _DEVICES.search(name)
    return _Column(
        name, int(nodes.group(1) or 1), int(devices.group(1)) if devices else None, "nvlink" in name.casefold()
    )


def _link(row: CsvRow, column: _Column, rate: float, operation: str) -> LinkObservation:
    size_bytes, efficiency = row.whole("Size"), row.number(column.name)
    if size_bytes < 1 or not 0 < efficiency <= 1.5:
        raise ValueError(f"size {size_bytes}, efficiency {efficiency:g} in '{column.name[:30]}'")
    detail: dict[str, Scalar] = {
        "efficiency": efficiency,
        "operation": operation,
        "bandwidth_is": "bus bandwidth",
        "num_nodes": column.num_nodes,
    }
    if column.num_devices is not None:
        detail["num_devices"] = column.num_devices
    return LinkObservation(
        "device_to_device" if column.inside else "network",
        "device:0" if column.inside else "node:0",
        "device:1" if column.inside else "node:1",
        "one_way",
        size_bytes,
        efficiency * rate,
        method="efficiency x given line rate",
        detail=detail,
        row=row.line,
    )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every cell whose line rate is given, as a link.  Raises DocumentInvalid without any line rate."""
    file = files[0]
    imported = Imported(tool="simai")
    rates = {
        True: given_bytes_per_s(options, "nvlink_rate_bytes_per_s"),
        False: given_bytes_per_s(options, "line_rate_bytes_per_s"),
    }
    table = open_csv(file, required=("Size",))
    columns = [column for name in table.header if (column := _column(name)) is not None]
    if not any(rates.values()):
        raise DocumentInvalid("the table holds efficiencies, not bandwidths", where=file.where, hint=_HINT)
    operation = options.given.get("operation") or (
        "all_to_all" if file.name.startswith("ata") else "all_gather, reduce_scatter"
    )
    unread = [name for name in table.header if name and name != "Size" and _column(name) is None]
    links: list[LinkObservation] = []
    for row in table.rows(imported):
        for column in columns:
            rate = rates[column.inside]
            if not row[column.name]:
                imported.skip("empty cell")
            elif rate is None:
                imported.skip("no line rate given for the column")
            else:
                try:
                    links.append(_link(row, column, rate, operation[:60]))
                except ValueError as error:
                    imported.bad(row.line, str(error), "an efficiency is a number between 0 and 1")
        if unread:
            imported.skip("column without a number of nodes", sum(1 for name in unread if row[name]))
    batches = Batches()
    batches.of(environment_of(options)).links.extend(links)
    return finished(imported, batches, file, "no cell with a given line rate", _HINT)


FORMAT = Format("simai-ratio", "SimAI efficiency table (nic/nvlink/ata_ratio.csv)", matches, read)
