"""Measured rows of the installed ``aiconfigurator-core`` package as tables of efficiencies.

Columns and their traps: ``profiles.importers.aiconfigurator``.  Of a kernel's versions the newest counts, shape by
shape; shapes that only an older one has are taken from it.  Rows of eager launches, of other activations than gated
ones and of zero time are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from profiles.arrays import Array
from profiles.importers.aiconfigurator.installed import table_files
from profiles.serving_kernels import roofline
from profiles.serving_kernels.grid import Table, distinct, tabulated
from profiles.serving_kernels.roofline import Rates

FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "int8_wo": "int8",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}
"""Two words for one format are two kernels of which the faster counts: Blackwell reads inputs of mxfp4 in 8 bit."""
_LEFT_OUT = re.compile("_eager$|nongated")
_ROUTING = re.compile(r"^(?:balanced|uniform|power_law_([\d.]+))$")
_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
WEIGHT_SIDES = ("columns", "inner")
_FEWEST_WEIGHTS = 50
_SLOWER_THAN_PLAIN = {"matmul": 3.0, "experts": 1.5}
"""Median time over that in 16 bit from which a table is left out; small matmuls really pay for scaling their inputs."""
_SMS = 20
"""Multiprocessors that DeepEP's normal kernels take by default (``Buffer.num_sms``)."""

Columns = dict[str, Any]
_Part = tuple[str, dict[str, Any], dict[str, Any], Any, Any]
"""Key, features, sizes, measured seconds, seconds of the roofline."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Measured rows of one kernel in one format, each shape and size once."""

    features: tuple[str, ...]
    shapes: Array
    """[row, feature]"""
    sizes: Array
    """[row, size]"""
    seconds: Array
    logs: Array
    """log(measured / roofline)"""

    def chosen(self, good: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.features, self.shapes[good], self.sizes[good], self.seconds[good], self.logs[good])

    def table(self) -> Table:
        """All rows as a table; matmuls with both sides of the weights as sizes."""
        table = tabulated(self.features, self.shapes, self.sizes, self.logs)
        return table.dense() if self.features == WEIGHT_SIDES else table


def kernel_rows(system: str, engine: str, rates: Rates, kernels: Collection[str] = ()) -> dict[str, Rows]:
    """Rows of one engine (or library) on one system, by ``kernel/format``; ``kernels``: first words of these keys."""
    parts: dict[str, list[tuple[int, _Part]]] = {}
    for name, (kernel, read) in _READERS.items():
        if not kernels or kernel in kernels:
            for age, columns in enumerate(_files(system, FRAMEWORKS.get(engine, engine), name)):
                for part in read(columns, rates):
                    if len(part[3]):
                        parts.setdefault(part[0], []).append((age, part))
    found = {key: _newest(each) for key, each in parts.items()}
    return {key: rows for key, rows in found.items() if _usable(key, rows, found)}


def _usable(key: str, rows: Rows, found: dict[str, Rows]) -> bool:
    """Whether a table is one that predictions may stand on.

    Matmuls must cover the sizes of models.  A format of 8 or 4 bits that takes far longer than the engine's 16 bit was
    timed with launches or on kernels without tuning, which nobody deploys: vLLM's fp8_block matmuls take the same 0.2
    to 0.6 ms for 1 as for 1,024 rows on Blackwell, its fp8 experts on Hopper 2.2 times as long as bf16.
    """
    kernel, _, number_format = key.partition("/")
    if kernel == "matmul" and len(distinct(rows.shapes)[0]) < _FEWEST_WEIGHTS:
        return False
    plain = found.get(f"{kernel}/bf16")
    if kernel not in _SLOWER_THAN_PLAIN or number_format not in ("fp8", "fp8_block", "nvfp4") or plain is None:
        return True
    both = [np.column_stack([each.shapes, each.sizes]) for each in (plain, rows)]
    same = distinct(np.concatenate(both))[1]
    _, ours, theirs = np.intersect1d(same[len(both[0]) :], same[: len(both[0])], return_indices=True)
    return not len(ours) or float(np.median(rows.seconds[ours] / plain.seconds[theirs])) < _SLOWER_THAN_PLAIN[kernel]


def _newest(aged: list[tuple[int, _Part]]) -> Rows:
    """Rows of several releases, the newest 0: each shape has those of the first release that measured it.

    Of rows that say the same the fastest counts: an engine chooses among its kernels.
    """
    parts = [part for _, part in aged]
    shapes = np.concatenate([np.stack(list(part[1].values()), 1).astype(float) for part in parts])
    sizes = np.concatenate([np.stack(list(part[2].values()), 1).astype(float) for part in parts])
    seconds = np.concatenate([part[3] for part in parts])
    logs = np.log(seconds / np.concatenate([part[4] for part in parts]))
    age = np.repeat([each for each, _ in aged], [len(part[3]) for part in parts])
    shape = distinct(shapes)[1]
    first = np.full(shape.max() + 1, age.max())
    np.minimum.at(first, shape, age)
    good = np.flatnonzero(age == first[shape])
    good = good[np.argsort(logs[good], kind="stable")]
    once, _ = distinct(np.column_stack([shape[good], sizes[good]]))
    return Rows(tuple(parts[0][1]), shapes, sizes, seconds, logs).chosen(good[once])


def _files(system: str, framework: str, name: str) -> Iterator[Columns]:
    """Columns of each version of one file, newest first."""
    paths = [
        path
        for path in table_files(system)
        if path.name == f"{name}_perf.parquet" and path.parent.parent.name == framework
    ]
    for path in sorted(paths, key=lambda path: _order(path.parent.name), reverse=True):
        yield _columns(path)


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """1.3.0rc20 after 1.3.0rc10, 0.5.14 after 0.5.6.post2."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", version))


def _columns(path: Path) -> Columns:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    good = np.ones(table.num_rows, dtype=bool)
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    for name in ("kernel_source", "backend"):
        if name in columns:
            good &= _among(columns[name], lambda word: not _LEFT_OUT.search(word))
    if "latency" in columns:
        good &= columns["latency"] > 0
    return _where(columns, good)


def _among(column: Any, wanted: Callable[[str], bool]) -> Any:
    """Rows whose word passes."""
    words = column.tolist()
    passes = {word: wanted(str(word)) for word in set(words)}
    return np.array([passes[word] for word in words], dtype=bool)


def _split(columns: Columns, *names: str) -> Iterator[tuple[tuple[str, ...], Columns]]:
    """Rows by the words of some columns."""
    words = list(zip(*(columns[name].tolist() for name in names), strict=True))
    numbers = {each: number for number, each in enumerate(sorted(set(words)))}
    row = np.array([numbers[each] for each in words])
    for each, number in numbers.items():
        yield each, _where(columns, row == number)


def _where(columns: Columns, good: Any) -> Columns:
    return {name: column[good] for name, column in columns.items()}


def _seconds(columns: Columns) -> Any:
    return columns["latency"] * 1e-3


def _matmuls(columns: Columns, rates: Rates) -> Iterator[_Part]:
    for (word,), part in _split(columns, "gemm_dtype"):
        if word in FORMATS:
            m, n, k = (part[name].astype(float) for name in "mnk")
            least = roofline.matmul_s(rates, m, n, k, FORMATS[word])
            yield f"matmul/{FORMATS[word]}", {"columns": n, "inner": k}, {"rows": m}, _seconds(part), least


def _attention(columns: Columns, rates: Rates) -> Iterator[_Part]:
    prefill = "context" in str(columns["op_name"][0])
    for (attention, cache), part in _split(columns, "attn_dtype", "kv_cache_dtype"):
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
        yield name, features, sizes, _seconds(part), least


def _latent(columns: Columns, rates: Rates) -> Iterator[_Part]:
    prefill = "context" in str(columns["op_name"][0])
    for (cache,), part in _split(columns, "kv_cache_dtype"):
        batch, new, cached, heads = (part[name].astype(float) for name in ("batch_size", "isl", "step", "num_heads"))
        if prefill:
            least = roofline.latent_prefill_s(rates, batch, new, cached, heads)
            sizes = {"batch": batch, "tokens": new}
        else:
            least = roofline.latent_decode_s(rates, batch, cached, heads, FORMATS[cache])
            sizes = {"batch": batch, "tokens": cached + 1.0}
        name = f"{'latent_prefill' if prefill else 'latent_decode'}/{FORMATS[cache]}"
        yield name, {"num_heads": heads}, sizes, _seconds(part), least


def _latent_matmuls(columns: Columns, rates: Rates) -> Iterator[_Part]:
    """In 16 bit: look-ups ask no other."""
    columns = _where(columns, _among(columns["bmm_dtype"], lambda word: FORMATS[word] == "bf16"))
    for (word, name), part in _split(columns, "bmm_dtype", "op_name"):
        tokens, heads = part["num_tokens"].astype(float), part["num_heads"].astype(float)
        least = roofline.latent_matmul_s(rates, tokens, heads)
        side = "after" if name.endswith("post") else "before"
        yield (
            f"latent_matmul/{side}/{FORMATS[word]}",
            {"num_heads": heads},
            {"tokens": tokens},
            _seconds(part),
            least,
        )


def _experts(columns: Columns, rates: Rates, kernel: str = "experts") -> Iterator[_Part]:
    for (word, distribution), part in _split(columns, "moe_dtype", "distribution"):
        routing = _ROUTING.match(distribution)
        if word in FORMATS and routing:
            tokens = part["num_tokens"].astype(float)
            names = ("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
            hidden, ffn, topk, experts, etp, ep = (part[name].astype(float) for name in names)
            shape = {"hidden": hidden, "ffn": ffn / etp, "topk": topk, "experts": experts / ep, "ep": ep}
            least = roofline.experts_s(rates, tokens, shape, FORMATS[word])
            features = {**shape, "skew": np.full(len(tokens), float(routing[1] or 0.0))}
            yield f"{kernel}/{FORMATS[word]}", features, {"tokens": tokens}, _seconds(part), least


def _library_collectives(columns: Columns, rates: Rates) -> Iterator[_Part]:
    """Of 16-bit elements: ``message_size`` counts elements."""
    for (word, name), part in _split(columns, "nccl_dtype", "op_name"):
        if word in ("half", "bfloat16") and name in _OPERATIONS:
            yield _collective(part, "all_to_all" if name == "alltoall" else name, rates)


def _engine_all_reduce(columns: Columns, rates: Rates) -> Iterator[_Part]:
    yield _collective(columns, "all_reduce", rates)


def _collective(columns: Columns, operation: str, rates: Rates) -> _Part:
    moved, devices = 2.0 * columns["message_size"], columns["num_gpus"].astype(float)
    least = roofline.collective_s(rates, operation, moved, devices)
    sizes = {"devices": devices, "bytes": moved}
    return f"collective/{operation}", {"one": np.ones(len(moved))}, sizes, _seconds(columns), least


def _exchange(
    columns: Columns, rates: Rates, kind: str, phase: str, names: tuple[str, str, str], seconds: Any
) -> _Part:
    """``names``: columns of tokens, experts a token, devices."""
    tokens, topk, devices = (columns[name].astype(float) for name in names)
    hidden, nodes = columns["hidden_size"].astype(float), columns["node_num"].astype(float)
    least = roofline.exchange_s(rates, phase, tokens * topk * hidden, devices, nodes)
    features = {"nodes": nodes, "hidden": hidden, "topk": topk, "experts": columns["num_experts"].astype(float)}
    return f"exchange/{kind}/{phase}", features, {"tokens": tokens}, seconds, least


def _deepep(columns: Columns, rates: Rates, kind: str) -> Iterator[_Part]:
    columns = {**columns, "devices": columns["node_num"] * rates.devices_per_node}
    for phase in ("dispatch", "combine"):
        part = columns
        if f"{phase}_sms" in columns:
            part = _where(columns, columns[f"{phase}_sms"] == _SMS)
            micro = part[f"{phase}_transmit_us"] + np.nan_to_num(part[f"{phase}_notify_us"].astype(float))
        else:
            micro = part[f"{phase}_avg_t_us"]
        good = micro > 0
        names = ("num_token", "num_topk", "devices")
        yield _exchange(_where(part, good), rates, kind, phase, names, micro[good] * 1e-6)


def _all_to_all(columns: Columns, rates: Rates) -> Iterator[_Part]:
    """Of vLLM and TensorRT-LLM: ``latency`` is microseconds here."""
    words = set(columns["comm_dtype"].astype(str))
    for (backend, word, phase), part in _split(columns, "comm_backend", "comm_dtype", "phase"):
        low_latency = backend.endswith("_ll")
        # TensorRT-LLM's normal kernels send 16 bit where they have no fp8.
        wanted = "default" if "default" in words else "fp8" if phase == "dispatch" and low_latency else "bfloat16"
        if word == wanted and "_v2_" not in backend:
            kind = "low_latency" if low_latency else "normal"
            yield _exchange(part, rates, kind, phase, ("num_tokens", "topk", "ep_size"), part["latency"] * 1e-6)


def _casts(columns: Columns, rates: Rates) -> Iterator[_Part]:
    """Cast to fp8 with a given scale: 2 bytes read and 1 written an element, nothing else.

    Only vLLM's kernel: SGLang's reaches a tenth of the memory bandwidth, which norms and activations do not.
    """
    columns = _where(columns, _among(columns["kernel_source"], lambda word: word == "static_scaled_fp8_quant"))
    moved = 3.0 * columns["m"] * columns["k"]
    once, place = np.unique(moved, return_inverse=True)
    seconds = _seconds(columns)
    order = np.lexsort((seconds, place.ravel()))
    groups = np.split(order, np.cumsum(np.bincount(place.ravel(), minlength=1))[:-1])
    middle = [group[len(group) // 2] for group in groups if len(group)]
    yield "pass_over", {"one": np.ones(len(once))}, {"bytes": once}, seconds[middle], roofline.pass_over_s(rates, once)


_READERS: dict[str, tuple[str, Callable[[Columns, Rates], Iterator[_Part]]]] = {
    "gemm": ("matmul", _matmuls),
    "context_attention": ("prefill", _attention),
    "generation_attention": ("decode", _attention),
    "context_mla": ("latent_prefill", _latent),
    "generation_mla": ("latent_decode", _latent),
    "mla_bmm": ("latent_matmul", _latent_matmuls),
    "moe": ("experts", _experts),
    "wideep_context_moe": ("experts", lambda columns, rates: _experts(columns, rates, "experts_normal")),
    "wideep_generation_moe": ("experts", lambda columns, rates: _experts(columns, rates, "experts_low_latency")),
    "nccl": ("collective", _library_collectives),
    "oneccl": ("collective", _library_collectives),
    "custom_allreduce": ("collective", _engine_all_reduce),
    "moe_a2a": ("exchange", _all_to_all),
    "wideep_deepep_ll": ("exchange", lambda columns, rates: _deepep(columns, rates, "low_latency")),
    "wideep_deepep_normal": ("exchange", lambda columns, rates: _deepep(columns, rates, "normal")),
    "scale_matrix": ("pass_over", _casts),
}
"""Files of the package: the first word of the keys that each gives, and how it is read."""
FILES = frozenset(_READERS)
