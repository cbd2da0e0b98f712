"""Total and mean operator times: ``op_statistic*.csv`` and ``operator_details.csv``.

``op_statistic`` is one row for each type of kernel: count, total, minimum, average, maximum in microseconds; it has no
shapes.  ``operator_details`` is one row for each call of a framework operator with its input shapes: kept are calls
that launched kernels themselves (``Device Self Duration``), so that nested operators are not counted twice.
"""

from __future__ import annotations

from profiles.importers.msprof_csv.shapes import tensor_shapes, tidy
from profiles.importing.csv_rows import CsvRow, CsvTable
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.importing.torch_operators import operator_rule, point_wise
from profiles.importing.torch_shapes import call_shape
from profiles.observations.records import OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing

_MAX_GROUPS = 200_000
_LONGEST_NAME = 200


def read_statistic(table: CsvTable, batch: Batch, imported: Imported, where: str = "") -> None:
    """Add one observation for each type of kernel."""
    for row in table.rows(imported):
        try:
            batch.operators.append(_statistic(row))
        except ValueError as error:
            imported.bad(f"{where}:{row.line}" if where else row.line, str(error))


def _statistic(row: CsvRow) -> OperatorObservation:
    kind = row["OP Type"]
    if not kind:
        raise ValueError("the row has no type")
    count = row.whole("Count")
    average_us, low_us, high_us = (row.optional_number(f"{each} Time(us)") for each in ("Avg", "Min", "Max"))
    if average_us is None:
        average_us = row.number("Total Time(us)") / max(count, 1)
    operator = kernel_class(kind)
    detail: dict[str, Scalar] = {"core": row["Core Type"]} if row["Core Type"] else {}
    if operator == "collective":
        detail["operation"] = collective_operation(kind)
    return OperatorObservation(
        operator=operator,
        name=kind[:_LONGEST_NAME],
        timing=Timing(
            average_us / 1e6,
            statistic="single" if count == 1 else "mean",
            num_samples=count,
            min_s=None if low_us is None else low_us / 1e6,
            max_s=None if high_us is None else high_us / 1e6,
        ),
        detail=detail,
        row=row.line,
    )


def read_operator_details(table: CsvTable, batch: Batch, imported: Imported, where: str = "") -> None:
    """Add one observation for each operator and input shapes."""
    groups: dict[tuple[str, str], tuple[Durations, int]] = {}
    for row in table.rows(imported):
        try:
            duration_us = row.number("Device Self Duration(us)")
            if duration_us < 0:
                raise ValueError("column 'Device Self Duration(us)' is negative")
            name = row["Name"]
            if not name:
                raise ValueError("the row has no name")
            if duration_us == 0:
                imported.skip("operators that launch no kernel themselves")
                continue
            key = (name, row["Input Shapes"])
            if key not in groups and len(groups) >= _MAX_GROUPS:
                imported.skip(f"operators beyond {_MAX_GROUPS:,} different ones")
                continue
            groups.setdefault(key, (Durations(), row.line))[0].add(round(duration_us * 1e6))
        except (ValueError, OverflowError) as error:
            imported.bad(f"{where}:{row.line}" if where else row.line, str(error))
    for (name, inputs), (durations, line) in groups.items():
        try:
            batch.operators.append(_framework_operator(name, inputs, durations, line))
        except ValueError as error:
            imported.bad(line, str(error))


def _framework_operator(name: str, inputs: str, durations: Durations, line: int) -> OperatorObservation:
    rule = operator_rule(name)
    shape: dict[str, int] = {}
    detail: dict[str, Scalar] = {"input_shapes": tidy(inputs)} if tidy(inputs) else {}
    if rule is not None:
        operator = rule.operator
        phase: Phase = "backward" if rule.backward else "unknown"
        found = call_shape(rule, tensor_shapes(inputs) or [], (), ())
        shape, operator = dict(found.shape), "decode_attention" if found.decode else operator
        detail |= found.detail
    else:
        operator = "elementwise" if point_wise(name) else kernel_class(name)
        phase = "backward" if "backward" in name.casefold() else "unknown"
    return OperatorObservation(
        operator=operator,
        name=name[:_LONGEST_NAME],
        timing=durations.timing(1e12),
        phase=phase,
        shape=shape,
        detail=detail,
        row=line,
    )
