"""Vidur's operator profiles: one CSV row a number of tokens and tensor-parallel degree, columns a piece of the layer.

Recognised by ``time_stats.<operator>.<statistic>`` columns beside ``num_tensor_parallel_workers``.  Times are in
milliseconds, forward only, on one device that holds a 1/tp shard.  ``mlp.csv`` (all pieces but attention) carries
``n_head, n_kv_head, n_embd, n_expanded_embd, vocab_size, use_gated_mlp, num_tokens``; ``attention.csv`` carries
``batch_size, prefill_chunk_size, kv_cache_size`` (what lies in the cache before the chunk).  Shapes follow Vidur's
model: head size = n_embd / n_head, fused q, k, v of (n_head + 2 n_kv_head) head size / tp columns, a gated MLP has
2 n_expanded_embd / tp columns.  The number format is not in the file (``--set dtype=``).  An empty cell means that the
operator was not run in that row, a zero that it took less than the printed microsecond: left out.  LLMServingSim's
``attention.csv`` (v0) has the same form.

Source: microsoft/vidur vidur/profiling/mlp/mlp_impl.py, attention/attention_wrapper.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiles.importing.csv_rows import CsvRow, CsvTable, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import shown
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation
from profiles.observations.timing import Statistic, Timing

_PREFIX = "time_stats."
_WORKERS = "num_tensor_parallel_workers"
_Shape = Callable[[CsvRow, int], dict[str, int]]


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    return bool(rows) and _WORKERS in rows[0] and any(cell.startswith(_PREFIX) for cell in rows[0])


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("vidur")
    batches = Batches()
    for file in files:
        table = open_csv(file, required=(_WORKERS,))
        batch = batches.of(environment_of(options))
        for row in table.rows(imported):
            _take_row(row, stats_columns(table), batch, imported, options)
    if not options.given.get("dtype"):
        imported.flag("dtype-not-stated", "the file does not say the number format; --set dtype=fp16 adds it")
    return finished(imported, batches, files[0], "no operator of any row has a time", "check that the file is complete")


def stats_columns(table: CsvTable) -> dict[str, dict[str, str]]:
    """Operator -> statistic -> column, from ``time_stats.<operator>.<statistic>``."""
    found: dict[str, dict[str, str]] = {}
    for name in table.header:
        parts = name.removeprefix(_PREFIX).rsplit(".", 1)
        if name.startswith(_PREFIX) and len(parts) == 2:
            found.setdefault(parts[0], {})[parts[1]] = name
    return found


def stats_timing(row: CsvRow, columns: dict[str, str]) -> Timing | None:
    """The time of one operator, milliseconds to seconds; None where its cells are empty or zero.  Raises ValueError."""
    values = {name: row.optional_number(column) for name, column in columns.items()}
    order: tuple[Statistic, ...] = ("median", "mean", "min", "max")
    statistic: Statistic | None = next((name for name in order if values.get(name) is not None), None)
    if statistic is None or values[statistic] == 0:
        return None
    seconds = {name: None if value is None else value * 1e-3 for name, value in values.items()}
    return Timing(
        (values[statistic] or 0.0) * 1e-3,
        statistic,
        min_s=seconds.get("min"),
        max_s=seconds.get("max"),
        std_s=seconds.get("std"),
    )


def _take_row(
    row: CsvRow, columns: dict[str, dict[str, str]], batch: Batch, imported: Imported, options: ReadOptions
) -> None:
    dtype, model = dtype_of(options.given.get("dtype", "")), options.given.get("model", "")
    found: list[OperatorObservation] = []
    try:
        workers = row.whole(_WORKERS)
        if workers < 1:
            raise ValueError(f"column '{_WORKERS}': {workers} is no degree")
        for name, statistics in columns.items():
            timing = stats_timing(row, statistics)
            if timing is None:
                imported.skip("operator that was not run in the row, or in less than a microsecond")
                continue
            operator, shape_of = _OPERATORS.get(name, ("other", _tokens))
            detail: dict[str, str | int | float | bool] = {"tensor_parallel": workers}
            if model:
                detail["model"] = model
            if backend := row["attention_backend"]:
                detail["attention_backend"] = backend[:60]
            causal = True if name == "attn_prefill" else None
            found.append(
                OperatorObservation(
                    operator,
                    name,
                    timing,
                    phase="forward",
                    dtype=dtype,
                    shape=shape_of(row, workers),
                    causal=causal,
                    detail=detail,
                    row=row.line,
                )
            )
    except ValueError as error:
        imported.bad(row.line, str(error), "is the row cut off, or from another file?")
        return
    batch.operators += found


def _share(total: int, workers: int, what: str) -> int:
    if total < 1 or total % workers:
        raise ValueError(f"{shown(what)} is {total}, which {workers} workers cannot share evenly")
    return total // workers


def _head_dim(row: CsvRow) -> int:
    heads = row.whole("n_head" if row["n_head"] else "n_q_head")
    return _share(row.whole("n_embd"), max(heads, 1), "n_embd")


def _tokens(row: CsvRow, workers: int) -> dict[str, int]:
    return {"num_tokens": row.whole("num_tokens")} if row["num_tokens"] else {}


def _hidden(row: CsvRow, workers: int) -> dict[str, int]:
    return {"num_tokens": row.whole("num_tokens"), "hidden_size": row.whole("n_embd")}


def _embedding(row: CsvRow, workers: int) -> dict[str, int]:
    return {**_hidden(row, workers), "vocab_size": row.whole("vocab_size"), "tensor_parallel": workers}


def _activation(row: CsvRow, workers: int) -> dict[str, int]:
    return {
        **_tokens(row, workers),
        "ffn_hidden_size": _share(row.whole("n_expanded_embd"), workers, "n_expanded_embd"),
    }


def _heads(row: CsvRow, workers: int) -> dict[str, int]:
    return {
        "num_heads": _share(row.whole("n_head" if row["n_head"] else "n_q_head"), workers, "n_head"),
        "num_kv_heads": _share(row.whole("n_kv_head"), workers, "n_kv_head"),
        "head_dim": _head_dim(row),
    }


def _rotary(row: CsvRow, workers: int) -> dict[str, int]:
    return {**_tokens(row, workers), **_heads(row, workers)}


def _pre_projection(row: CsvRow, workers: int) -> dict[str, int]:
    columns = (row.whole("n_head") + 2 * row.whole("n_kv_head")) * _head_dim(row)
    return {"m": row.whole("num_tokens"), "n": _share(columns, workers, "q, k, v"), "k": row.whole("n_embd")}


def _post_projection(row: CsvRow, workers: int) -> dict[str, int]:
    inner = _share(row.whole("n_head") * _head_dim(row), workers, "heads")
    return {"m": row.whole("num_tokens"), "n": row.whole("n_embd"), "k": inner}


def _up_projection(row: CsvRow, workers: int) -> dict[str, int]:
    gated = row["use_gated_mlp"].casefold()
    if gated not in ("true", "false"):
        raise ValueError(f"column 'use_gated_mlp': {shown(gated)} is neither True nor False")
    columns = row.whole("n_expanded_embd") * (2 if gated == "true" else 1)
    return {"m": row.whole("num_tokens"), "n": _share(columns, workers, "n_expanded_embd"), "k": row.whole("n_embd")}


def _down_projection(row: CsvRow, workers: int) -> dict[str, int]:
    inner = _share(row.whole("n_expanded_embd"), workers, "n_expanded_embd")
    return {"m": row.whole("num_tokens"), "n": row.whole("n_embd"), "k": inner}


def _attention(row: CsvRow, workers: int) -> dict[str, int]:
    decoding = row["is_prefill"].casefold() == "false"
    query = 1 if decoding else row.whole("prefill_chunk_size")
    return {
        "batch_size": row.whole("batch_size"),
        "query_length": query,
        "key_length": query + row.whole("kv_cache_size"),
        **_heads(row, workers),
    }


_OPERATORS: dict[str, tuple[str, _Shape]] = {
    "emb": ("embedding", _embedding),
    "input_layernorm": ("norm", _hidden),
    "post_attention_layernorm": ("norm", _hidden),
    "attn_pre_proj": ("matmul", _pre_projection),
    "attn_post_proj": ("matmul", _post_projection),
    "attn_rope": ("rotary", _rotary),
    "mlp_up_proj": ("matmul", _up_projection),
    "mlp_down_proj": ("matmul", _down_projection),
    "mlp_act": ("activation", _activation),
    "add": ("elementwise", _hidden),
    "attn_prefill": ("attention", _attention),
    "attn_decode": ("decode_attention", _attention),
    "attn_kv_cache_save": ("copy", _attention),
    "attn_input_reshape": ("copy", _attention),
    "attn_output_reshape": ("copy", _attention),
}

FORMAT = Format("vidur-compute", "Vidur operator profiles (mlp.csv, attention.csv)", _matches, _read)
