"""NeuSight's operator measurements: CSV files of linear, bmm, softmax, vector and norm operators on several devices.

Recognised by ``OPName, Latency, Device`` in the header.  ``Latency`` is in milliseconds, forward and
backward under their own names.  Shapes stand in the columns ``B, M, N, K`` (linear: M rows, N outputs,
K inputs; bmm: B products) or ``B, H`` (vector operators: B rows of H elements).  The number format follows from the
kernel's name (sgemm: fp32, tf32, h.., f16, bf16); where it does not, ``--set dtype=``.  One file holds several
devices: one batch each.  A ``device_configs`` JSON holds data-sheet numbers and is refused.

Source: sitar-lab/NeuSight scripts/asplos/data/dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.environment import Environment
from profiles.observations.records import OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing

_COLUMNS = ("OPName", "Latency", "Device")
_CONFIGURATION = re.compile(r'"(?:Mem_Bw|SingleFLOPs|Num_Sm)"\s*:')
_CLASSES: dict[str, str] = {
    "linear": "matmul", "bmm": "matmul", "softmax": "softmax", "layernorm": "norm", "ln": "norm", "layer_norm": "norm",
    "gelu": "activation", "relu": "activation", "tanh": "activation", "silu": "activation", "add": "elementwise",
    "sub": "elementwise", "mul": "elementwise", "div": "elementwise", "pow": "elementwise", "sqrt": "elementwise",
    "dropout": "dropout", "embedding": "embedding",
}  # fmt: skip

_KERNEL_DTYPES = (
    (r"bf16|bfloat16", "bf16"),
    (r"tf32", "tf32"),
    (r"hgemm|f16|half|h\d{4,}gemm", "fp16"),
    (r"sgemm|float", "fp32"),
)


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    if rows and all(name in rows[0] for name in _COLUMNS):
        return True
    return head.text.lstrip()[:1] == "{" and len(_CONFIGURATION.findall(head.text[:4000])) == 3


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("neusight")
    batches = Batches()
    environments: dict[tuple[str, ...], Environment] = {}
    for file in files:
        if file.head().text.lstrip()[:1] == "{":
            raise DocumentInvalid(
                "this is NeuSight's description of a device: data-sheet numbers, no measurement",
                where=file.where,
                hint="import its operator files (linear.csv, bmm.csv, ...); devices are in the catalogue",
            )
        for row in open_csv(file, required=_COLUMNS).rows(imported):
            try:
                found = _operator(row, options)
            except ValueError as error:
                imported.bad(row.line, str(error), "is the row cut off?")
                continue
            key = tuple(row[name] for name in ("Device", "Torch Version", "CUDA Version"))
            if key not in environments:
                environments[key] = environment_of(
                    options,
                    key[0],
                    framework="torch",
                    framework_version=key[1].removeprefix("p"),
                    runtime_version=_cuda(key[2]),
                    num_devices=1,
                )
            batches.of(environments[key]).operators.append(found)
    return finished(imported, batches, files[0], "no row holds an operator", "check that the file is complete")


def _operator(row: CsvRow, options: ReadOptions) -> OperatorObservation:
    """One row.  Raises ValueError."""
    name = row["OPName"]
    if not name:
        raise ValueError("column 'OPName' is empty")
    plain = name.casefold()
    backward = any(word in plain for word in ("backward", "_bw", "bwd"))
    phase: Phase = "backward" if backward else "forward"
    base = re.sub(r"[_-]?(?:forward|backward|fwd|bwd|fw|bw)$", "", plain)
    operator = _CLASSES.get(base) or next((kind for word, kind in _CLASSES.items() if base.startswith(word)), "other")
    detail: dict[str, Scalar] = {}
    if kernel := row["Kernel Name"]:
        detail["kernel"] = kernel[:200]
    return OperatorObservation(
        operator,
        name,
        Timing(row.number("Latency") * 1e-3),
        phase=phase,
        dtype=_dtype(f"{row['Kernel Name']} {row['Kernels']}") or dtype_of(options.given.get("dtype", "")),
        shape=_shape(row, operator),
        detail=detail,
        row=row.line,
    )


def _shape(row: CsvRow, operator: str) -> dict[str, int]:
    if operator == "matmul":
        sizes = {key: row.whole(column) for key, column in (("m", "M"), ("n", "N"), ("k", "K"))}
        batch = row.optional_whole("B")
        return {"batch_size": batch, **sizes} if batch is not None and batch != 1 else sizes
    rows, length = row.optional_whole("B"), row.optional_whole("H")
    if rows is not None and length is not None:
        return {"num_tokens": rows, "hidden_size": length, "num_elements": rows * length}
    return {} if rows is None else {"num_elements": rows}


def _dtype(kernels: str) -> str:
    """The number format that the kernels' names state; empty where they do not."""
    plain = kernels.casefold()
    for pattern, dtype in _KERNEL_DTYPES:
        if re.search(pattern, plain):
            return dtype
    return ""


def _cuda(text: str) -> str:
    """``cu121`` as 12.1."""
    match = re.fullmatch(r"cu(\d{2})(\d)", text)
    return f"{match[1]}.{match[2]}" if match else text[:20]


FORMAT = Format("neusight", "NeuSight operator measurements (CSV)", _matches, _read)
