"""Measured rows of the installed ``aiconfigurator-core`` package as tables of efficiencies.

Columns and their traps: ``profiles.importers.aiconfigurator``.  Of a kernel's versions the newest counts, shape by
shape; shapes that only an older one has are taken from it.  Rows of eager launches, of other activations than gated
ones and of zero time are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from profiles.importers.aiconfigurator.installed import table_files
from profiles.serving_kernels import roofline
from profiles.serving_kernels.grid import Table, tabulated
from profiles.serving_kernels.roofline import Rates

FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
LIBRARIES = ("nccl", "oneccl")
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "int8_wo": "int8",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
}
_LEFT_OUT = re.compile("_eager$|nongated")
_SKEWS = {"balanced": 0.0, "power_law_1.01": 1.01, "power_law_1.2": 1.2}
_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
_SMS = 20
"""Multiprocessors that DeepEP's normal kernels take by default (``Buffer.num_sms``)."""

Rows = dict[str, Any]
Keep = Callable[[int], Any]
"""Which of so many rows of a file are read, for leave-out tests."""
_Part = tuple[str, dict[str, Any], dict[str, Any], Any]
"""Key, features, sizes, log of measured over roofline."""


def tables(
    system: str, engine: str, rates: Rates, kernels: Collection[str] = (), version: str = "", keep: Keep | None = None
) -> dict[str, Table]:
    """Tables of one engine (or library) on one system, by ``kernel/format``; ``version``: of that release only."""
    parts: dict[str, list[tuple[dict[str, Any], dict[str, Any], Any]]] = {}
    for name, read in _READERS.items():
        if kernels and KERNELS[name] not in kernels:
            continue
        for rows in _files(system, FRAMEWORKS.get(engine, engine), name, version, keep):
            for key, features, sizes, logs in read(rows, rates):
                if len(logs):
                    parts.setdefault(key, []).append((features, sizes, logs))
    return {key: _newest(found) for key, found in parts.items()}


def _newest(parts: list[tuple[dict[str, Any], dict[str, Any], Any]]) -> Table:
    """One table of several releases' rows, newest first: each shape has the rows of the first that measured it."""
    shapes = np.concatenate([np.stack(list(features.values()), 1).astype(float) for features, _, _ in parts])
    sizes = np.concatenate([np.stack(list(sizes.values()), 1).astype(float) for _, sizes, _ in parts])
    logs = np.concatenate([logs for _, _, logs in parts])
    age = np.repeat(np.arange(len(parts)), [len(logs) for _, _, logs in parts])
    _, shape = np.unique(shapes, axis=0, return_inverse=True)
    shape = shape.ravel()
    first = np.full(shape.max() + 1, len(parts))
    np.minimum.at(first, shape, age)
    good = age == first[shape]
    return tabulated(tuple(parts[0][0]), shapes[good], sizes[good], logs[good])


def _files(system: str, framework: str, name: str, version: str, keep: Keep | None) -> Iterator[Rows]:
    """Columns of each version of one file, newest first."""
    paths = [
        path
        for path in table_files(system)
        if path.name == f"{name}_perf.parquet"
        and path.parent.parent.name == framework
        and version in ("", path.parent.name)
    ]
    for path in sorted(paths, key=lambda path: _order(path.parent.name), reverse=True):
        yield _columns(path, keep)


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """1.3.0rc20 after 1.3.0rc10, 0.5.14 after 0.5.6.post2."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", version))


def _columns(path: Path, keep: Keep | None) -> Rows:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    good = np.ones(table.num_rows, dtype=bool) if keep is None else keep(table.num_rows)
    rows = {name: table.column(name).to_numpy() for name in table.column_names}
    for name in ("kernel_source", "backend"):
        if name in rows:
            good &= _among(rows[name], lambda word: not _LEFT_OUT.search(word))
    if "latency" in rows:
        good &= rows["latency"] > 0
    return {name: column[good] for name, column in rows.items()}


def _among(column: Any, wanted: Callable[[str], bool]) -> Any:
    """Rows whose word passes."""
    words, word = np.unique(column.astype(str), return_inverse=True)
    return np.array([wanted(str(text)) for text in words], dtype=bool)[word.ravel()]


def _split(rows: Rows, *names: str) -> Iterator[tuple[tuple[str, ...], Rows]]:
    """Rows by the words of some columns."""
    words = np.stack([rows[name].astype(str) for name in names], 1)
    for each in sorted({tuple(row) for row in words.tolist()}):
        yield each, _where(rows, (words == each).all(axis=1))


def _where(rows: Rows, good: Any) -> Rows:
    return {name: column[good] for name, column in rows.items()}


def _seconds(rows: Rows) -> Any:
    return rows["latency"] * 1e-3


def _matmuls(rows: Rows, rates: Rates) -> Iterator[_Part]:
    for (word,), part in _split(rows, "gemm_dtype"):
        if word in FORMATS:
            m, n, k = (part[name].astype(float) for name in "mnk")
            least = roofline.matmul_s(rates, m, n, k, FORMATS[word])
            yield f"matmul/{FORMATS[word]}", {"columns": n, "inner": k}, {"rows": m}, np.log(_seconds(part) / least)


def _attention(rows: Rows, rates: Rates) -> Iterator[_Part]:
    prefill = "context" in str(rows["op_name"][0])
    for (attention, cache), part in _split(rows, "attn_dtype", "kv_cache_dtype"):
        kv = FORMATS[cache]
        batch, new, cached = (part[name].astype(float) for name in ("batch_size", "isl", "step"))
        heads = [part[name].astype(float) for name in ("num_heads", "num_key_value_heads", "head_dim")]
        window = part["window_size"].astype(float) if "window_size" in part else np.zeros(len(batch))
        window = np.where(window > 0, window, 0.0)
        # Tables write a whole head's keys as "as many as query heads" in two ways.
        kv_heads = np.where(heads[1] > 0, heads[1], heads[0])
        seen = np.where(window > 0, window, np.inf)
        if prefill:
            least = roofline.prefill_s(rates, batch, new, cached, (heads[0], kv_heads, heads[2], seen), kv)
            sizes = {"batch": batch, "tokens": new}
        else:
            least = roofline.decode_s(rates, batch, cached, (heads[0], kv_heads, heads[2], seen), kv)
            sizes = {"batch": batch, "tokens": cached + 1.0}
        features = {"num_heads": heads[0], "num_kv_heads": kv_heads, "head_dim": heads[2], "window": window}
        name = f"prefill/{FORMATS[attention]}/{kv}" if prefill else f"decode/{kv}"
        yield name, features, sizes, np.log(_seconds(part) / least)


def _latent(rows: Rows, rates: Rates) -> Iterator[_Part]:
    prefill = "context" in str(rows["op_name"][0])
    for (cache,), part in _split(rows, "kv_cache_dtype"):
        batch, new, cached, heads = (part[name].astype(float) for name in ("batch_size", "isl", "step", "num_heads"))
        if prefill:
            least = roofline.latent_prefill_s(rates, batch, new, cached, heads)
            sizes = {"batch": batch, "tokens": new}
        else:
            least = roofline.latent_decode_s(rates, batch, cached, heads, FORMATS[cache])
            sizes = {"batch": batch, "tokens": cached + 1.0}
        name = f"{'latent_prefill' if prefill else 'latent_decode'}/{FORMATS[cache]}"
        yield name, {"num_heads": heads}, sizes, np.log(_seconds(part) / least)


def _latent_matmuls(rows: Rows, rates: Rates) -> Iterator[_Part]:
    for (word, name), part in _split(rows, "bmm_dtype", "op_name"):
        tokens, heads = part["num_tokens"].astype(float), part["num_heads"].astype(float)
        least = roofline.latent_matmul_s(rates, tokens, heads)
        side = "after" if name.endswith("post") else "before"
        yield (
            f"latent_matmul/{side}/{FORMATS[word]}",
            {"num_heads": heads},
            {"tokens": tokens},
            np.log(_seconds(part) / least),
        )


def _experts(rows: Rows, rates: Rates) -> Iterator[_Part]:
    for (word, distribution), part in _split(rows, "moe_dtype", "distribution"):
        if word in FORMATS and distribution in _SKEWS:
            tokens = part["num_tokens"].astype(float)
            names = ("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
            hidden, ffn, topk, experts, etp, ep = (part[name].astype(float) for name in names)
            shape = {"hidden": hidden, "ffn": ffn / etp, "topk": topk, "experts": experts / ep, "ep": ep}
            least = roofline.experts_s(rates, tokens, shape, FORMATS[word])
            features = {**shape, "skew": np.full(len(tokens), _SKEWS[distribution])}
            yield f"experts/{FORMATS[word]}", features, {"tokens": tokens}, np.log(_seconds(part) / least)


def _library_collectives(rows: Rows, rates: Rates) -> Iterator[_Part]:
    """Of 16-bit elements: ``message_size`` counts elements."""
    for (word, name), part in _split(rows, "nccl_dtype", "op_name"):
        if word in ("half", "bfloat16") and name in _OPERATIONS:
            yield _collective(part, "all_to_all" if name == "alltoall" else name, rates)


def _engine_all_reduce(rows: Rows, rates: Rates) -> Iterator[_Part]:
    yield _collective(rows, "all_reduce", rates)


def _collective(rows: Rows, operation: str, rates: Rates) -> _Part:
    moved, devices = 2.0 * rows["message_size"], rows["num_gpus"].astype(float)
    least = roofline.collective_s(rates, operation, moved, devices)
    return f"collective/{operation}", {"num_devices": devices}, {"bytes": moved}, np.log(_seconds(rows) / least)


def _exchange(rows: Rows, rates: Rates, kind: str, phase: str, names: tuple[str, str, str], seconds: Any) -> _Part:
    """``names``: columns of tokens, experts a token, devices."""
    tokens, topk, devices = (rows[name].astype(float) for name in names)
    hidden, nodes = rows["hidden_size"].astype(float), rows["node_num"].astype(float)
    least = roofline.exchange_s(rates, phase, tokens * topk * hidden, devices, nodes)
    features = {"nodes": nodes, "hidden": hidden, "topk": topk, "experts": rows["num_experts"].astype(float)}
    return f"exchange/{kind}/{phase}", features, {"tokens": tokens}, np.log(seconds / least)


def _deepep(rows: Rows, rates: Rates, kind: str) -> Iterator[_Part]:
    rows = {**rows, "devices": rows["node_num"] * rates.devices_per_node}
    for phase in ("dispatch", "combine"):
        part = rows
        if f"{phase}_sms" in rows:
            part = _where(rows, rows[f"{phase}_sms"] == _SMS)
            micro = part[f"{phase}_transmit_us"] + np.nan_to_num(part[f"{phase}_notify_us"].astype(float))
        else:
            micro = part[f"{phase}_avg_t_us"]
        good = micro > 0
        names = ("num_token", "num_topk", "devices")
        yield _exchange(_where(part, good), rates, kind, phase, names, micro[good] * 1e-6)


def _all_to_all(rows: Rows, rates: Rates) -> Iterator[_Part]:
    """Of vLLM and TensorRT-LLM: ``latency`` is microseconds here."""
    words = set(rows["comm_dtype"].astype(str))
    for (backend, word, phase), part in _split(rows, "comm_backend", "comm_dtype", "phase"):
        low_latency = backend.endswith("_ll")
        # TensorRT-LLM's normal kernels send 16 bit where they have no fp8.
        wanted = "default" if "default" in words else "fp8" if phase == "dispatch" and low_latency else "bfloat16"
        if word == wanted and "_v2_" not in backend:
            kind = "low_latency" if low_latency else "normal"
            yield _exchange(part, rates, kind, phase, ("num_tokens", "topk", "ep_size"), part["latency"] * 1e-6)


def _quantisation(rows: Rows, rates: Rates) -> Iterator[_Part]:
    """Scaling to fp8 with a given scale: 2 bytes read and 1 written an element, nothing else."""
    moved = 3.0 * rows["m"] * rows["k"]
    once, place = np.unique(moved, return_inverse=True)
    logs = np.log(_seconds(rows) / roofline.pass_over_s(rates, moved))
    order = np.lexsort((logs, place.ravel()))
    middle = [group[len(group) // 2] for group in np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])]
    yield "pass_over", {"one": np.ones(len(once))}, {"bytes": once}, logs[middle]


KERNELS = {
    "gemm": "matmul",
    "context_attention": "prefill",
    "generation_attention": "decode",
    "context_mla": "latent_prefill",
    "generation_mla": "latent_decode",
    "mla_bmm": "latent_matmul",
    "moe": "experts",
    "nccl": "collective",
    "oneccl": "collective",
    "custom_allreduce": "collective",
    "moe_a2a": "exchange",
    "wideep_deepep_ll": "exchange",
    "wideep_deepep_normal": "exchange",
    "scale_matrix": "pass_over",
}
"""Files of the package, and the first word of the keys that they give."""
_READERS: dict[str, Callable[[Rows, Rates], Iterator[_Part]]] = {
    "gemm": _matmuls,
    "context_attention": _attention,
    "generation_attention": _attention,
    "context_mla": _latent,
    "generation_mla": _latent,
    "mla_bmm": _latent_matmuls,
    "moe": _experts,
    "nccl": _library_collectives,
    "oneccl": _library_collectives,
    "custom_allreduce": _engine_all_reduce,
    "moe_a2a": _all_to_all,
    "wideep_deepep_ll": lambda rows, rates: _deepep(rows, rates, "low_latency"),
    "wideep_deepep_normal": lambda rows, rates: _deepep(rows, rates, "normal"),
    "scale_matrix": _quantisation,
}
