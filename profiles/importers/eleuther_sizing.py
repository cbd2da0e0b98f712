"""EleutherAI's sizing benchmark (cookbook): products and pieces of a transformer layer, two lines each.

    Elapsed time for qkv_transform (4x4096x12288, b=2048): 0.0034                 seconds, three or four decimals
    Throughput (in TFLOP/s) for qkv_transform (4x4096x12288, b=2048): 241.616

Dimensions are rows x inner x columns, ``b`` further rows in front (one weight for all of them); four dimensions are a
batched product, batch first.  The time follows from the throughput (more digits): ``2 b m n k / throughput``; without
one the rounded time is taken, flag ``rounded``, and a time rounded to zero is left out.  Forks print ``Elapsed time
(in us)``.  Repetitions are reduced by maximum, mean or minimum depending on the version: statistic unknown.  The number
format is not printed (the original runs fp16): ``--set dtype=``.  Durations of whole blocks (``Attention duration (in
seconds)``) are sums below the title ``Estimate``, left out; below ``Actual`` Megatron's block itself ran forward: one
observation of class ``module``, by the sizes in the line above the title.

Source: EleutherAI/cookbook benchmarks/sizing/{mm_flops,transformer_flops}.py, utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation, Scalar
from profiles.observations.timing import Timing

_CASE = r"(?:(?P<label>[A-Za-z]\w{1,60}) )?\(?(?P<dims>\d{1,9}(?:x\d{1,9}){1,4})(?:, ?b=(?P<b>\d{1,9}))?\)?"
_ELAPSED = re.compile(rf"\s*Elapsed time(?: \(in (?P<unit>us|ms|s)\))? for {_CASE} ?: *(?P<value>\S+)")
_THROUGHPUT = re.compile(rf"\s*Throughput \(in TFLOP/s\) for {_CASE} ?: *(?P<value>\S+)")
_TOTAL = re.compile(r"\s*[\w+-][\w +-]{0,60} (?:duration|throughput) \(in |\s*Transformer - MLP - Attention")
_BLOCK = re.compile(r"(Attention|MLP|Transformer) duration \(in seconds\): *(\S+)")
_BLOCK_RATE = re.compile(r"(Attention|MLP|Transformer) throughput \(in TFLOP/s\): *(\S+)")
_MODEL = re.compile(r"num_attention_heads: \d{1,6}, hidden_size: \d")
_SETTING = re.compile(r"(\w{1,40}): (\d{1,12})(?=,|\s*$)")
_SETTINGS = {
    "num_attention_heads": "num_heads", "hidden_size": "hidden_size", "train_micro_batch_size_per_gpu": "batch_size",
    "seq_length": "query_length", "tensor_mp_size": "tensor_parallel",
}  # fmt: skip
_ROUNDING_S = 5.1e-5
_LONGEST = 500
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_CLASSES = (
    (r"dropout", "dropout"), (r"softmax", "softmax"), (r"gelu|swiglu|silu|relu", "activation"), (r"norm", "norm"),
    (r"flash", "attention"),
)  # fmt: skip


@dataclass(slots=True)
class _Case:
    """One benchmark until its second line has been read."""

    line: int
    label: str
    dims: tuple[int, ...]
    rows: int | None
    elapsed_s: float
    tflops: float | None = None


@dataclass(slots=True)
class _Blocks:
    """Whole blocks of one model: ``sizes`` stand above them, ``pending`` waits for its throughput."""

    sizes: dict[str, int] = field(default_factory=dict)
    measured: bool = False
    pending: tuple[int, str, float] | None = None


def _matches(head: Head) -> bool:
    lines = head.text.splitlines()
    if any(_THROUGHPUT.match(line) for line in lines) and any(_ELAPSED.match(line) for line in lines):
        return True
    return any(_MODEL.match(line) for line in lines) and any(_BLOCK.match(line) for line in lines)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("eleuther-cookbook")
    batches = Batches()
    for file in files:
        batch = batches.of(environment_of(options, framework="torch", num_devices=1))
        case: _Case | None = None
        blocks = _Blocks()
        for line in log_lines(file):
            if len(line.text) > _LONGEST:
                continue
            try:
                if match := _ELAPSED.match(line.text):
                    _store(case, batch, options, imported)
                    case = None
                    case = _begin(match, line.number)
                elif match := _THROUGHPUT.match(line.text):
                    rate = finite_number(match["value"])
                    if rate < 0:
                        raise ValueError(f"a throughput of {rate} is none")
                    if case is not None and _same(case, match):
                        case.tflops = rate
                elif not _block_line(blocks, line, batch, options, imported) and _TOTAL.match(line.text):
                    imported.skip("total of several operators")
            except ValueError as error:
                case, blocks.pending = None, None
                imported.bad(line.number, str(error), "is the line cut off?")
        _store(case, batch, options, imported)
        _store_block(blocks, None, batch, options, imported)
    if not options.given.get("dtype"):
        imported.flag("dtype-not-stated", "the file does not say the number format; --set dtype=fp16 adds it")
    return finished(imported, batches, files[0], "there is no operator with a time", "check that it is complete")


def _begin(match: re.Match[str], line: int) -> _Case:
    """The case of an elapsed-time line.  Raises ValueError."""
    elapsed = finite_number(match["value"]) * _UNITS[match["unit"] or "s"]
    if elapsed < 0:
        raise ValueError(f"a time of {elapsed} s is none")
    dims = tuple(whole_number(size) for size in match["dims"].split("x"))
    return _Case(line, match["label"] or "", dims, whole_number(match["b"]) if match["b"] else None, elapsed)


def _same(case: _Case, match: re.Match[str]) -> bool:
    dims = tuple(int(size) for size in match["dims"].split("x"))
    return case.dims == dims and case.label == (match["label"] or "")


def _store(case: _Case | None, batch: Batch, options: ReadOptions, imported: Imported) -> None:
    if case is None:
        return
    operator = next((kind for pattern, kind in _CLASSES if re.search(pattern, case.label)), "")
    shape: dict[str, int] = {}
    time_s = case.elapsed_s
    if not operator:
        operator, shape = _product(case)
        flops = 2.0 * prod(case.dims) * (case.rows or 1)
        time_s = flops / (case.tflops * 1e12) if case.tflops else time_s
    else:
        shape = _sizes_of_points(operator, case.dims)
    if time_s == 0 or not shape or min(shape.values()) < 1:
        imported.skip("time rounded to zero, or a size of zero")
        return
    if not case.tflops and not any(flag.code == "rounded" for flag in imported.flags):
        imported.flag("rounded", "times without a throughput beside them have three or four decimals", case.line)
    detail: dict[str, Scalar] = {"dimensions": "x".join(map(str, case.dims))}
    name = case.label or operator
    try:
        found = OperatorObservation(
            operator, name, Timing(time_s), phase="forward", dtype=dtype_of(options.given.get("dtype", "")),
            shape=shape, detail=detail, row=case.line,
        )  # fmt: skip
    except ValueError as error:
        imported.bad(case.line, str(error), "is the line cut off?")
        return
    batch.operators.append(found)


def _sizes_of_points(operator: str, dims: tuple[int, ...]) -> dict[str, int]:
    if operator == "norm" and len(dims) > 1:
        return {"num_tokens": prod(dims[:-1]), "hidden_size": dims[-1]}
    return {"num_elements": prod(dims)}


def _sizes(text: str) -> dict[str, int]:
    return {_SETTINGS[name]: int(value) for name, value in _SETTING.findall(text) if name in _SETTINGS}


def _block_line(blocks: _Blocks, line: LogLine, batch: Batch, options: ReadOptions, imported: Imported) -> bool:
    """Take a line about whole blocks that ran; False for any other.  Raises ValueError."""
    if _MODEL.match(line.text):
        _store_block(blocks, None, batch, options, imported)
        blocks.sizes, blocks.measured = _sizes(line.text), False
    elif line.text in ("Actual", "Estimate"):
        blocks.measured = line.text == "Actual"
    elif blocks.measured and blocks.sizes and (match := _BLOCK.match(line.text)):
        _store_block(blocks, None, batch, options, imported)
        blocks.pending = (line.number, match[1], finite_number(match[2]))
    elif blocks.pending and (match := _BLOCK_RATE.match(line.text)) and match[1] == blocks.pending[1]:
        _store_block(blocks, finite_number(match[2]), batch, options, imported)
    else:
        return False
    return True


def _store_block(blocks: _Blocks, tflops: float | None, batch: Batch, options: ReadOptions, imported: Imported) -> None:
    """Store the block that waits.  Raises ValueError."""
    if blocks.pending is None:
        return
    line, name, time_s = blocks.pending
    blocks.pending = None
    flops = _block_flops(name, blocks.sizes)
    exact_s = flops / (tflops * 1e12) if tflops and tflops > 0 and flops else 0.0
    if abs(exact_s - time_s) <= _ROUNDING_S + 0.001 * time_s:
        time_s = exact_s
    elif time_s > 0 and not any(flag.code == "rounded" for flag in imported.flags):
        imported.flag("rounded", "times without a throughput beside them have three or four decimals", line)
    if time_s == 0:
        imported.skip("time rounded to zero, or a size of zero")
        return
    batch.operators.append(
        OperatorObservation(
            "module", name, Timing(time_s), phase="forward", dtype=dtype_of(options.given.get("dtype", "")),
            shape=dict(blocks.sizes), row=line,
        )
    )  # fmt: skip


def _block_flops(name: str, sizes: dict[str, int]) -> float:
    """What the benchmark divided by the time; 0 where the file does not say the sequence length."""
    length, hidden = sizes.get("query_length", 0), sizes["hidden_size"]
    tokens = sizes.get("batch_size", 0) * length / max(sizes.get("tensor_parallel", 1), 1)
    attention, mlp = 4.0 * tokens * hidden * (2 * hidden + length), 16.0 * tokens * hidden * hidden
    return {"Attention": attention, "MLP": mlp}.get(name, attention + mlp)


def _product(case: _Case) -> tuple[str, dict[str, int]]:
    """Class and sizes of a product; other numbers of dimensions have none."""
    if len(case.dims) == 4:
        batch, rows, inner, columns = case.dims
        return "matmul", {"batch_size": batch, "m": rows, "n": columns, "k": inner}
    if len(case.dims) == 3:
        rows, inner, columns = case.dims
        return "matmul", {"m": rows * (case.rows or 1), "n": columns, "k": inner}
    return "other", {"num_elements": prod(case.dims)}


FORMAT = Format("eleuther-sizing", "EleutherAI cookbook sizing benchmarks (mm.out, transformer.out)", _matches, _read)
