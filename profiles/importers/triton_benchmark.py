"""Triton's benchmark tables: the CSV that ``triton.testing.perf_report(...).run(save_path=...)`` writes.

Recognised by sizes in the first columns (``M, N, K``, ``size``, ``N_CTX``, ...) and one column a provider, ``Triton
(TFLOPS)``: the unit in brackets is the label of the plot's y axis.  Older versions write no unit: refused unless
``--set unit=ms``.  Milliseconds and microseconds are taken as they are; TFLOPS (or GFLOPS) of a product with M, N and K
give ``time = 2 M N K / rate``.  A rate whose FLOPs or bytes the file does not say (GB/s, attention's TFLOPS) has no
time: refused.  The statistic depends on the script (median by default since 2.1): unknown.  A tuned fused-MoE
configuration of vLLM or SGLang (``BLOCK_SIZE_M`` ...) says which tiles are fastest, not how fast: refused.

Source: triton-lang/triton python/triton/testing.py (Mark).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, CsvTable, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation, Scalar
from profiles.observations.timing import Timing

_SIZES = frozenset(
    ("m", "n", "k", "b", "h", "d", "size", "n_ctx", "batch", "batch_size", "seq_len", "seqlen", "hidden_size", "d_head",
     "head_dim", "num_tokens", "n_cols", "n_elements", "t", "v", "square_matrix_size")
)  # fmt: skip
_PROVIDER = re.compile(
    r"(?P<name>.{1,80}?) \((?P<unit>TFLOPS|TFLOP/s|TFlops|GFLOPS|GFLOP/s|GB/s|ms|us|Execution Time \(ms\))\)$"
)
_RATES = {"TFLOPS": 1e12, "TFLOP/s": 1e12, "TFlops": 1e12, "GFLOPS": 1e9, "GFLOP/s": 1e9}
_TIMES = {"ms": 1e-3, "us": 1e-6, "Execution Time (ms)": 1e-3}
_OLD_PROVIDER = re.compile(r"(?i)(?:triton|cublas|torch|flash)")
_TILES = re.compile(r'"BLOCK_SIZE_M"\s*:\s*\d')
_CLASSES = (
    (r"matmul|gemm", "matmul"), (r"softmax", "softmax"), (r"norm", "norm"), (r"attention", "attention"),
    (r"add|mul", "elementwise"), (r"dropout", "dropout"), (r"gelu|silu|swiglu|geglu|relu", "activation"),
    (r"cross.?entropy", "cross_entropy"), (r"embedding", "embedding"), (r"rope|rotary", "rotary"),
)  # fmt: skip


def _matches(head: Head) -> bool:
    if head.text.lstrip()[:1] == "{":
        return bool(_TILES.search(head.text[:20_000])) and "BLOCK_SIZE_N" in head.text
    rows = head_rows(head, limit=2)
    if len(rows) < 2 or rows[0][0].casefold() not in _SIZES or not _numeric(rows[1]):
        return False
    rest = [cell for cell in rows[0] if cell.casefold() not in _SIZES]
    united = [cell for cell in rest if _PROVIDER.match(cell)]
    return bool(rest) and (len(united) == len(rest) or all(_OLD_PROVIDER.match(cell) for cell in rest))


def _numeric(cells: Sequence[str]) -> bool:
    try:
        return all(finite_number(cell) is not None for cell in cells if cell)
    except ValueError:
        return False


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("triton")
    batches = Batches()
    for file in files:
        if file.head().text.lstrip()[:1] == "{":
            raise DocumentInvalid(
                "this is a tuned configuration of fused-MoE kernels: tile sizes, no times",
                where=file.where,
                hint="run the benchmark that made it (benchmark_moe.py) and import its times",
            )
        table = open_csv(file)
        batch = batches.of(environment_of(options, framework="triton", num_devices=1))
        columns = _providers(table, file, options)
        for row in table.rows(imported):
            _take_row(row, columns, batch, file, options, imported)
    missing = "no rate of this table can be turned into a time: it does not say the FLOPs or bytes"
    return finished(imported, batches, files[0], missing, "let the benchmark return milliseconds")


def _providers(table: CsvTable, file: SourceFile, options: ReadOptions) -> dict[str, tuple[str, str]]:
    """Column -> provider and unit.  Raises DocumentInvalid where the unit is nowhere."""
    given = options.given.get("unit", "")
    found: dict[str, tuple[str, str]] = {}
    for column in table.header:
        if column.casefold() in _SIZES or not column:
            continue
        match = _PROVIDER.match(column)
        unit = match["unit"] if match else given
        if unit not in _RATES and unit not in _TIMES and unit != "GB/s":
            raise DocumentInvalid(
                f"the column '{column[:60]}' has no unit that is known",
                where=f"{file.where}:{table.header_line}",
                hint="add --set unit=ms (or us, TFLOPS): the label of the plot's y axis",
            )
        found[column] = (match["name"] if match else column, unit)
    return found


def _take_row(
    row: CsvRow,
    columns: dict[str, tuple[str, str]],
    batch: Batch,
    file: SourceFile,
    options: ReadOptions,
    imported: Imported,
) -> None:
    try:
        sizes = {name.casefold(): row.whole(name) for name in row.columns if name.casefold() in _SIZES and row[name]}
        operator, shape = _operator(sizes, options.given.get("operation", "") or file.name)
        found: list[OperatorObservation] = []
        for column, (provider, unit) in columns.items():
            if not row[column]:
                imported.skip("case that the provider did not run")
                continue
            if provider.endswith(("-min", "-max")):
                continue
            time_s = _time(row.number(column), unit, sizes)
            if time_s is None:
                imported.skip("rate without known FLOPs or bytes")
                continue
            detail: dict[str, Scalar] = {"provider": provider, **(sizes if not shape else {})}
            found.append(
                OperatorObservation(
                    operator,
                    provider,
                    Timing(time_s),
                    # A product is what it computes, whatever it is for; other tables may time a backward pass.
                    phase="forward" if operator == "matmul" else "unknown",
                    dtype=dtype_of(options.given.get("dtype", "")),
                    shape=shape,
                    detail=detail,
                    row=row.line,
                )
            )
    except ValueError as error:
        imported.bad(row.line, str(error), "is the row cut off?")
        return
    batch.operators += found


def _time(value: float, unit: str, sizes: dict[str, int]) -> float | None:
    """Seconds; None where the unit is a rate of unknown work.  Raises ValueError."""
    if value <= 0:
        raise ValueError(f"{value} {unit} is no measurement")
    if unit in _TIMES:
        return value * _TIMES[unit]
    if unit in _RATES and all(name in sizes for name in ("m", "n", "k")):
        return 2.0 * sizes["m"] * sizes["n"] * sizes["k"] * max(sizes.get("b", 1), 1) / (value * _RATES[unit])
    return None


def _operator(sizes: dict[str, int], name: str) -> tuple[str, dict[str, int]]:
    """Class and shape: a product where M, N and K are there, else by the name of the benchmark."""
    if all(key in sizes for key in ("m", "n", "k")):
        shape = {key: sizes[key] for key in ("m", "n", "k")}
        return "matmul", {"batch_size": sizes["b"], **shape} if "b" in sizes else shape
    operator = next((kind for pattern, kind in _CLASSES if re.search(pattern, name.casefold())), "kernel")
    if operator in ("softmax", "norm") and "m" in sizes and "n" in sizes:
        return operator, {"num_tokens": sizes["m"], "hidden_size": sizes["n"]}
    if "size" in sizes and len(sizes) == 1:
        return operator, {"num_elements": sizes["size"]}
    return operator, {}


FORMAT = Format("triton-benchmark", "Triton benchmark tables (perf_report CSV)", _matches, _read)
