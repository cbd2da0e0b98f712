"""vTrain's ground truth: measured iterations of Megatron-DeepSpeed on A100s, one CSV row a configuration.

Recognised by its header: ``# GPUs, global batch, micro batch, hidden size, attention heads, # layers, sequence length,
tensor parallelism, data parallelism, pipeline parallelism, iteration time (ms)``; the multi-node file begins with
``Parameters (billion)``.  A byte order mark may stand in front.  Device, number format and software are not in the
file (the paper: A100, fp16, full recomputation): ``--set device=a100-sxm4-80gb``.

Source: VIA-Research/vTrain data/ground_truth_{single,multi}.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation, Scalar
from profiles.observations.timing import Timing

_TIME = "iteration time (ms)"
_DEGREES = {"tensor parallelism": "tp", "data parallelism": "dp", "pipeline parallelism": "pp"}
_MODEL = {"hidden size": "hidden_size", "attention heads": "num_attention_heads", "# layers": "num_layers"}
_COLUMNS = ("# GPUs", "global batch", "micro batch", "sequence length", *_DEGREES, *_MODEL, _TIME)


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    return bool(rows) and all(name in rows[0] for name in ("# GPUs", "tensor parallelism", _TIME))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("vtrain")
    batches = Batches()
    for file in files:
        for row in open_csv(file, required=_COLUMNS).rows(imported):
            try:
                found = _iteration(row, options)
            except ValueError as error:
                imported.bad(row.line, str(error), "is the row cut off?")
                continue
            environment = environment_of(options, num_devices=found.num_devices, framework="megatron-deepspeed")
            batches.of(environment).iterations.append(found)
    return finished(imported, batches, files[0], "no row holds an iteration", "check that the file is complete")


def _iteration(row: CsvRow, options: ReadOptions) -> IterationObservation:
    """One row.  Raises ValueError."""
    strategy: dict[str, Scalar] = {key: row.whole(name) for name, key in _DEGREES.items()}
    devices = row.whole("# GPUs")
    tp, dp, pp = (row.whole(name) for name in _DEGREES)
    if min(tp, dp, pp, devices) < 1 or tp * dp * pp != devices:
        raise ValueError(f"{tp} x {dp} x {pp} degrees are not {devices} GPUs")
    detail: dict[str, Scalar] = {key: row.whole(name) for name, key in _MODEL.items()}
    if (parameters := row.optional_number("Parameters (billion)")) is not None:
        detail["parameters_billion"] = parameters
    return IterationObservation(
        Timing(row.number(_TIME) * 1e-3),
        model=options.given.get("model", "gpt"),
        strategy=strategy,
        num_devices=devices,
        global_batch_size=row.whole("global batch"),
        micro_batch_size=row.whole("micro batch"),
        sequence_length=row.whole("sequence length"),
        detail=detail,
        row=row.line,
    )


FORMAT = Format("vtrain-truth", "vTrain's measured iterations (ground_truth_*.csv)", _matches, _read)
