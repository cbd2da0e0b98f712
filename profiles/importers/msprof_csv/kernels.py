"""The time of each kernel on the NPU.

Read from ``kernel_details.csv`` (torch_npu), ``op_summary*.csv`` (msprof), ``task_time*.csv`` (names and times).
One observation for each type, input shapes, number formats and core; the ranks of one run are pooled.  The wait before
a kernel is not part of it.  Kernels of HCCL are collectives without a size; their time includes waiting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profiles.importers.msprof_csv.shapes import common_dtype, product_shape, tidy
from profiles.importing.csv_rows import CsvRow, CsvTable
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.observations.records import OperatorObservation, Scalar

_TYPE = ("Type", "OP Type", "kernel_type")
_NAME = ("Name", "Op Name", "kernel_name")
_DURATION = ("Duration(us)", "Task Duration(us)", "task_time(us)")
_CORE = ("Accelerator Core", "Task Type")
_PICOSECONDS_PER_US = 1e6
_LONGEST_NAME = 200
_MAX_GROUPS = 500_000

_UNNAMED = ("", "n/a", "compute", "communication")
"""Types that say nothing about the operator: then the name counts."""
_GRADIENT = re.compile(r"Grad(?![a-z])|Backward")

_Key = tuple[str, str, str, str, str, str, str]


@dataclass(slots=True)
class KernelGroups:
    """Durations by what a kernel is."""

    groups: dict[_Key, tuple[Durations, int, str]] = field(default_factory=dict)

    def add_table(self, table: CsvTable, imported: Imported, where: str = "") -> None:
        """Add the rows of one file; ``where`` names it in bad rows when several are read."""
        columns = [
            next((name for name in names if name in table.columns), "") for names in (_TYPE, _NAME, _DURATION, _CORE)
        ]
        for row in table.rows(imported):
            try:
                self._add(row, columns, imported)
            except (ValueError, OverflowError) as error:
                imported.bad(f"{where}:{row.line}" if where else row.line, str(error))

    def _add(self, row: CsvRow, columns: list[str], imported: Imported) -> None:
        type_column, name_column, duration_column, core_column = columns
        duration_us = row.number(duration_column)
        if duration_us < 0:
            raise ValueError(f"column '{duration_column}' is {row[duration_column]}: a time is not negative")
        if duration_us == 0:
            imported.skip("kernels without a duration")
            return
        name = row[name_column]
        kind = row[type_column] if row[type_column].casefold() not in _UNNAMED else name
        if not kind:
            raise ValueError("the row has neither a name nor a type")
        key = (
            kind, row["Input Shapes"], row["Input Data Types"], row["Input Formats"], row["Output Shapes"],
            row["Output Formats"], row[core_column],
        )  # fmt: skip
        if key not in self.groups:
            if len(self.groups) >= _MAX_GROUPS:
                imported.skip(f"kernels beyond {_MAX_GROUPS:,} different ones")
                return
            self.groups[key] = (Durations(), row.line, name)
        self.groups[key][0].add(round(duration_us * _PICOSECONDS_PER_US))

    def store(self, batch: Batch, imported: Imported) -> None:
        """Add an observation for each group."""
        for key, (durations, line, name) in self.groups.items():
            try:
                batch.operators.append(_observation(key, durations, line, name))
            except ValueError as error:
                imported.bad(line, str(error))
        if any(each.operator == "collective" for each in batch.operators):
            imported.flag("waiting-included", "times of HCCL kernels include waiting for the last rank")


def _observation(key: _Key, durations: Durations, line: int, name: str) -> OperatorObservation:
    kind, inputs, dtypes, formats, outputs, output_formats, core = key
    operator = kernel_class(kind)
    if operator == "kernel":
        operator = kernel_class(name)
    if core.casefold() in ("hccl", "communication"):
        operator = "collective"
    detail: dict[str, Scalar] = {}
    for label, text in (("input_shapes", inputs), ("input_formats", formats), ("core", core)):
        if tidy(text):
            detail[label] = tidy(text)
    if name and name != kind:
        detail["kernel"] = name[:_LONGEST_NAME]
    if operator == "collective":
        detail["operation"] = collective_operation(f"{kind} {name}")
    return OperatorObservation(
        operator=operator,
        name=kind[:_LONGEST_NAME],
        timing=durations.timing(_PICOSECONDS_PER_US * 1e6),
        phase="backward" if _GRADIENT.search(kind) else "unknown",
        dtype=common_dtype(dtypes) if tidy(dtypes) else "",
        shape=product_shape(inputs, outputs, formats, output_formats) if operator == "matmul" else {},
        detail=detail,
        row=line,
    )
