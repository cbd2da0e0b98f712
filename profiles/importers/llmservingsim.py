"""LLMServingSim's layer profiles: CSV files of one device, model and tensor-parallel degree, forward only.

Older: ``[hardware, model,] layer_name, input, kv_cache[, tp_size], latency(ns)``: nanoseconds.  Newer, microseconds
(``time_us``, mean of 3 by default): ``dense.csv`` (``layer, tokens``), ``per_sequence.csv`` (``layer, sequences``),
``attention.csv`` (``prefill_chunk, kv_prefill, n_decode, kv_decode``: one batch of a chunk and n_decode decodes),
``moe.csv`` (``ep, tokens, activated_experts``).  Model sizes are not in the files: a projection has its number of
tokens only.  Mixed attention batches keep their four numbers in the detail.  TPU profiles of attention
(``prefill_chunk_size, kv_cache_size, batch_size, is_prefill, mean_ns, p50_ns, p90_ns, max_ns``) are nanoseconds, the
cache without the chunk.  Files called ``*predictions*``, or with a column ``prediction``, are no measurements: refused.
Its v0 attention.csv is in Vidur's form (vidur-compute).

Source: casys-kaist/LLMServingSim profiler/core/{categories,writer}.py, llm_profile/.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, CsvTable, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.environment import Environment
from profiles.observations.records import OperatorObservation, Scalar
from profiles.observations.timing import Timing

_OLD = ("layer_name", "input", "kv_cache", "latency(ns)")
_ATTENTION = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
_EXPERTS = ("tokens", "activated_experts", "time_us")
_PERCENTILES = ("prefill_chunk_size", "kv_cache_size", "batch_size", "is_prefill", "p50_ns")
_PREDICTED = ("kv_cache_size", "prediction")
_HEADERS = (
    _OLD, ("layer", "tokens", "time_us"), ("layer", "sequences", "time_us"), _ATTENTION, _EXPERTS, _PERCENTILES,
    _PREDICTED,
)  # fmt: skip
_CLASSES: dict[str, str] = {
    "embedding": "embedding", "act_fn": "activation", "rope": "rotary", "rotary_emb": "rotary", "attn": "attention",
    "lm_head": "matmul", "sampler": "other", "gate": "router", "moe": "moe", "experts": "moe",
}  # fmt: skip


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    return bool(rows) and any(all(name in rows[0] for name in header) for header in _HEADERS)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("llmservingsim")
    batches = Batches()
    environments: dict[str, Environment] = {}
    for file in files:
        table = open_csv(file, is_header=lambda cells: any(all(name in cells for name in one) for one in _HEADERS))
        if "prediction" in file.name or table.has("prediction"):
            raise DocumentInvalid(
                "these are predictions of LLMServingSim's regression, no measurements",
                where=file.where,
                hint="import the profile files beside them (layers.csv, attention.csv)",
            )
        for row in table.rows(imported):
            try:
                found = _operator(row, table, options)
            except ValueError as error:
                imported.bad(row.line, str(error), "is the row cut off?")
                continue
            reported, framework = row["hardware"], "vllm" if table.has("time_us") else ""
            if reported not in environments:
                environments[reported] = environment_of(options, reported, framework=framework)
            batches.of(environments[reported]).operators.append(found)
    if not options.given.get("dtype"):
        imported.flag("dtype-not-stated", "the file does not say the number format; --set dtype=bf16 adds it")
    return finished(imported, batches, files[0], "no row holds a layer", "check that the file is complete")


def _attention_of_percentiles(row: CsvRow, options: ReadOptions) -> OperatorObservation:
    """One row of a TPU profile.  Raises ValueError."""
    chunk, cached = row.whole("prefill_chunk_size"), row.whole("kv_cache_size")
    prefill = row["is_prefill"].casefold() == "true"
    if chunk < 0 or cached < 0 or (prefill and chunk < 1):
        raise ValueError("a chunk and a cache have sizes from 0, a prefill a chunk from 1")
    new = chunk if prefill else 1
    p90_ns, max_ns = row.optional_number("p90_ns"), row.optional_number("max_ns")
    return OperatorObservation(
        "attention" if prefill else "decode_attention",
        "attention",
        Timing(
            row.number("p50_ns") * 1e-9,
            "median",
            p90_s=None if p90_ns is None else p90_ns * 1e-9,
            max_s=None if max_ns is None else max_ns * 1e-9,
        ),
        phase="forward",
        dtype=dtype_of(options.given.get("dtype", "")),
        shape={"batch_size": row.whole("batch_size"), "query_length": new, "key_length": new + cached},
        causal=True,
        detail={key: given[:80] for key in ("model",) if (given := options.given.get(key, ""))},
        row=row.line,
    )


def _operator(row: CsvRow, table: CsvTable, options: ReadOptions) -> OperatorObservation:
    """One row.  Raises ValueError."""
    if table.has(*_PERCENTILES):
        return _attention_of_percentiles(row, options)
    detail: dict[str, Scalar] = {}
    causal: bool | None = None
    shape: dict[str, int]
    if table.has(*_ATTENTION):
        name, causal = "attention", True
        sizes = {column: row.whole(column) for column in _ATTENTION[:4]}
        detail.update(sizes)
        operator, shape = _attention(sizes)
    elif table.has(*_EXPERTS):
        name, operator = "moe", "moe"
        shape = {"num_tokens": row.whole("tokens")}
        detail["activated_experts"] = row.whole("activated_experts")
        if table.has("ep"):
            shape["expert_parallel"] = row.whole("ep")
    else:
        name = row["layer_name"] or row["layer"]
        if not name:
            raise ValueError("the name of the layer is empty")
        operator = _class_of(name)
        shape = {"num_tokens": next(row.whole(c) for c in ("input", "tokens", "sequences") if table.has(c))}
        if operator == "matmul":
            shape = {"m": shape["num_tokens"]}
        if (cached := row.optional_whole("kv_cache")) is not None and operator == "attention":
            shape = {"query_length": shape["num_tokens"], "key_length": shape["num_tokens"] + cached}
            causal = True
    if (degree := row.optional_whole("tp_size")) is not None:
        detail["tensor_parallel"] = degree
    for key in ("model", "tensor_parallel"):
        if key not in detail and (given := row[key] or options.given.get(key, "")):
            detail[key] = given[:80]
    scale, column = (1e-9, "latency(ns)") if table.has("latency(ns)") else (1e-6, "time_us")
    timing = Timing(row.number(column) * scale, "unknown" if scale == 1e-9 else "mean")
    dtype = dtype_of(options.given.get("dtype", ""))
    return OperatorObservation(
        operator, name, timing, phase="forward", dtype=dtype, shape=shape, causal=causal, detail=detail, row=row.line
    )


def _attention(sizes: dict[str, int]) -> tuple[str, dict[str, int]]:
    """Class and shape of one batch; a mixed one has no single shape."""
    if any(size < 0 for size in sizes.values()):
        raise ValueError("sizes of attention are not negative")
    chunk, decodes = sizes["prefill_chunk"], sizes["n_decode"]
    if chunk and not decodes:
        return "attention", {"batch_size": 1, "query_length": chunk, "key_length": chunk + sizes["kv_prefill"]}
    if decodes and not chunk:
        return "decode_attention", {"batch_size": decodes, "query_length": 1, "key_length": sizes["kv_decode"]}
    return "other", {}


def _class_of(name: str) -> str:
    plain = name.casefold()
    if plain in _CLASSES:
        return _CLASSES[plain]
    if plain.endswith("_proj") or plain in ("qkv", "o", "gate_up"):
        return "matmul"
    return "norm" if "norm" in plain else "module"


FORMAT = Format("llmservingsim", "LLMServingSim layer profiles (CSV)", _matches, _read)
