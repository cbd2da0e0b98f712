"""Kernel times of one engine on one device: roofline times, multiplied by what was measured of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from profiles.errors import DocumentInvalid, NotFound
from profiles.serving_kernels import roofline
from profiles.serving_kernels.grid import Grid, Table
from profiles.serving_kernels.kernel_times import AttentionHeads, Basis, CollectiveName, Exchange, Experts, Seconds
from profiles.serving_kernels.roofline import Rates

ENGINES = ("vllm", "sglang", "tensorrt-llm")
LIBRARIES = ("nccl", "oneccl")
_NEAREST_FORMATS = {
    "bf16": (),
    "fp8": ("fp8_block", "bf16"),
    "fp8_block": ("fp8", "bf16"),
    "nvfp4": ("fp8", "bf16"),
    "mxfp4": ("int4", "bf16"),
    "int8": ("bf16",),
    "int4": ("bf16",),
}
"""Whose efficiency a format has that was not measured."""
_CACHES = {"bf16": ("bf16",), "fp8": ("fp8", "bf16"), "nvfp4": ("fp8", "bf16")}
_KEYS = {
    "matmul_s": ("matmul/{0}",),
    "prefill_attention_s": ("prefill/{0}/{0}", "prefill/bf16/{0}"),
    "decode_attention_s": ("decode/{0}",),
    "latent_prefill_s": ("latent_prefill/{0}",),
    "latent_decode_s": ("latent_decode/{0}",),
    "experts_s": ("experts/{0}",),
    "collective_s": ("collective/all_reduce",),
    "expert_exchange_s": ("exchange/normal/dispatch",),
    "pass_over_s": ("pass_over",),
}
"""Methods, and the tables of a number format that they are judged by."""

Read = Callable[[str, str], Table | None]
"""(engine or library, key) -> that table of one device."""


@dataclass(slots=True)
class TableTimes:
    """``KernelTimes`` from tables (``profiles.serving_kernels.kernel_times``: what each method gives)."""

    device: str
    engine: str
    rates: Rates
    reads: tuple[Read, ...]
    """Tables of devices, nearest first."""
    own_device: bool
    """Whether the first of them is this device."""
    _grids: dict[Any, Grid] = field(default_factory=dict)
    _attentions: dict[Any, tuple[Grid, int]] = field(default_factory=dict)

    def matmul_s(self, rows: ArrayLike, columns: ArrayLike, inner: ArrayLike, number_format: str) -> Seconds:
        """See ``KernelTimes``."""
        key = ("matmul", number_format)
        grid = self._grids.get(key) or self._made(key, lambda: self._only(_formats("matmul", number_format)))
        m, n, k = _numbers(rows, columns, inner)
        return _seconds(roofline.matmul_s(self.rates, m, n, k, number_format) * grid.factor(n, k, m), m)

    def prefill_attention_s(
        self,
        batch: ArrayLike,
        new_tokens: ArrayLike,
        cached_tokens: ArrayLike,
        heads: AttentionHeads,
        cache_format: str,
    ) -> Seconds:
        """See ``KernelTimes``.

        Tables hold no cached tokens: the efficiency is that of a whole prompt with as many pairs of tokens.
        """
        b, new, cached = _numbers(batch, new_tokens, cached_tokens)
        grid, window = self._attention("prefill", heads, cache_format)
        shape = (heads.num_heads, heads.num_kv_heads, heads.head_dim, float(heads.window or np.inf))
        least = roofline.prefill_s(self.rates, b, new, cached, shape, cache_format)
        pairs = roofline.seen_pairs(new, cached, shape[3])
        return _seconds(least * grid.factor(b, _whole_prompt(pairs, window)), b * new)

    def decode_attention_s(
        self, batch: ArrayLike, cached_tokens: ArrayLike, heads: AttentionHeads, cache_format: str
    ) -> Seconds:
        """See ``KernelTimes``."""
        b, cached = _numbers(batch, cached_tokens)
        grid, window = self._attention("decode", heads, cache_format)
        shape = (heads.num_heads, heads.num_kv_heads, heads.head_dim, float(heads.window or np.inf))
        keys = cached + 1.0 if window or not heads.window else np.minimum(cached + 1.0, heads.window)
        return _seconds(roofline.decode_s(self.rates, b, cached, shape, cache_format) * grid.factor(b, keys), b)

    def latent_prefill_s(
        self, batch: ArrayLike, new_tokens: ArrayLike, cached_tokens: ArrayLike, num_heads: int, cache_format: str
    ) -> Seconds:
        """See ``KernelTimes``."""
        b, new, cached = _numbers(batch, new_tokens, cached_tokens)
        grid = self._latent("latent_prefill", num_heads, _CACHES[cache_format])
        pairs = roofline.seen_pairs(new, cached, np.inf)
        least = roofline.latent_prefill_s(self.rates, b, new, cached, num_heads)
        return _seconds(least * grid.factor(b, _whole_prompt(pairs, 0)), b * new)

    def latent_decode_s(self, batch: ArrayLike, cached_tokens: ArrayLike, num_heads: int, cache_format: str) -> Seconds:
        """See ``KernelTimes``."""
        b, cached = _numbers(batch, cached_tokens)
        grid = self._latent("latent_decode", num_heads, _CACHES[cache_format])
        least = roofline.latent_decode_s(self.rates, b, cached, num_heads, cache_format)
        one = roofline.latent_matmul_s(self.rates, b, num_heads)
        sides = [self._latent(f"latent_matmul/{side}", num_heads, ("bf16",)).factor(b) for side in ("before", "after")]
        return _seconds(least * grid.factor(b, cached + 1.0) + one * (sides[0] + sides[1]), b)

    def experts_s(
        self,
        tokens: ArrayLike,
        experts: Experts,
        number_format: str,
        skew: float = 1.01,
        exchange: Exchange = "gathered",
    ) -> Seconds:
        """See ``KernelTimes``.  TensorRT-LLM's kernels skip what is not the device's, so that its exchange is one."""
        (t,) = _numbers(tokens)
        shape = {
            "hidden": float(experts.hidden_size),
            "ffn": experts.ffn_hidden_size / experts.etp,
            "topk": float(experts.experts_per_token),
            "experts": experts.num_experts / experts.ep,
            "ep": float(experts.ep),
        }
        plain = exchange == "gathered" or experts.ep == 1 or self.engine == "tensorrt-llm"
        kernel = "experts" if plain else f"experts_{exchange}"
        key = (kernel, experts, number_format, skew)
        grid = self._grids.get(key) or self._made(key, lambda: self._routed(kernel, shape, number_format, skew))
        return _seconds(roofline.experts_s(self.rates, t, shape, number_format) * grid.factor(t), t)

    def collective_s(self, operation: CollectiveName, num_bytes: ArrayLike, num_devices: int) -> Seconds:
        """See ``KernelTimes``."""
        (moved,) = _numbers(num_bytes)
        if num_devices <= 1:
            return np.zeros(np.shape(moved))
        if operation == "send_recv":
            # Each of two devices sends half of the gathered tensor to the other.
            return self.collective_s("all_gather", 2.0 * moved, 2)
        key = ("collective", operation, num_devices)
        grid = self._grids.get(key) or self._made(key, lambda: self._collective(operation, num_devices))
        devices = float(num_devices)
        least = roofline.collective_s(self.rates, operation, moved, devices)
        return _seconds(least * grid.factor(devices, moved), moved)

    def expert_exchange_s(
        self,
        phase: Literal["dispatch", "combine"],
        tokens: ArrayLike,
        experts: Experts,
        devices_per_node: int,
        *,
        low_latency: bool,
    ) -> Seconds:
        """See ``KernelTimes``."""
        (t,) = _numbers(tokens)
        if experts.ep <= 1:
            return np.zeros(np.shape(t))
        nodes = max(experts.ep / devices_per_node, 1.0)
        kind = "low_latency" if low_latency else "normal"
        key = ("exchange", kind, phase, experts, nodes)
        grid = self._grids.get(key) or self._made(key, lambda: self._exchange(kind, phase, experts, nodes))
        values = t * float(experts.hidden_size * experts.experts_per_token)
        least = roofline.exchange_s(self.rates, phase, values, float(experts.ep), nodes)
        return _seconds(least * grid.factor(t), t)

    def pass_over_s(self, num_bytes: ArrayLike) -> Seconds:
        """See ``KernelTimes``.  It is vLLM's cast to fp8 on every engine."""
        (moved,) = _numbers(num_bytes)
        key = ("pass_over",)
        grid = self._grids.get(key) or self._made(key, lambda: self._only([["pass_over"]]))
        return _seconds(roofline.pass_over_s(self.rates, moved) * grid.factor(moved), moved)

    def measured(self, kernel: str, number_format: str = "") -> Basis:
        """See ``KernelTimes``."""
        if kernel not in _KEYS:
            raise DocumentInvalid(f"'{kernel}' is no kernel", where="kernel", hint="known: " + ", ".join(sorted(_KEYS)))
        if not self.own_device:
            return "roofline"
        own = (self.reads[0](self.engine, key.format(number_format)) for key in _KEYS[kernel])
        return "measured" if any(table is not None for table in own) else "extrapolated"

    def _made(self, key: Any, make: Callable[[], Grid]) -> Grid:
        self._grids[key] = make()
        return self._grids[key]

    def _only(self, groups: list[list[str]]) -> Grid:
        """The grid of a table of one shape."""
        return self._found(groups).blended({"one": 1.0})

    def _nearest(self, key: str, suits: Callable[[Table], Any], libraries: tuple[str, ...] = ()) -> Table:
        """The first table that suits, else the first: nearest device, then this engine, libraries, other engines."""
        places = (self.engine, *libraries, *(name for name in ENGINES if name != self.engine))
        every = (table for read in self.reads for place in places if (table := read(place, key)) is not None)
        first = next(every)
        return next((table for table in chain((first,), every) if suits(table)), first)

    def _found(self, groups: list[list[str]]) -> Table:
        """The first table of the first group that has one on this device; else the first of the nearest devices'."""
        for read in self.reads:
            for keys in groups:
                for engine in (self.engine, *(name for name in ENGINES if name != self.engine)):
                    for key in keys:
                        table = read(engine, key)
                        if table is not None:
                            return table
        raise NotFound(f"no device has a table of {groups[0][0]}", where="kernel_times", hint="a damaged installation")

    def _attention(self, kernel: str, heads: AttentionHeads, cache_format: str) -> tuple[Grid, int]:
        """The grid over (batch, tokens), and the window of its measurements: 0 = none, where that one has none."""
        key = (kernel, heads, cache_format)
        if key not in self._attentions:
            caches = _CACHES[cache_format]
            prefill = [[f"prefill/{kv}/{kv}", f"prefill/bf16/{kv}"] for kv in caches]
            table = self._found(prefill if kernel == "prefill" else [[f"decode/{kv}"] for kv in caches])
            like = (table.column("window") == (heads.window or 0)) & (table.column("head_dim") == heads.head_dim)
            window = heads.window if heads.window and like.any() else 0
            wanted = {"num_heads": heads.num_heads, "num_kv_heads": heads.num_kv_heads, "head_dim": heads.head_dim}
            self._attentions[key] = table.only("window", window).blended(wanted), window
        return self._attentions[key]

    def _latent(self, kernel: str, num_heads: int, formats: tuple[str, ...]) -> Grid:
        key = (kernel, num_heads, formats)
        return self._grids.get(key) or self._made(
            key,
            lambda: self._found([[f"{kernel}/{name}"] for name in formats]).blended({"num_heads": num_heads}),
        )

    def _routed(self, kernel: str, shape: dict[str, float], number_format: str, skew: float) -> Grid:
        formats = _formats(kernel, number_format)
        # DeepEP's tables are of blocks of fp8 alone.
        table = self._found(formats if kernel == "experts" else [*formats, [f"{kernel}/fp8_block"]])
        measured = np.unique(table.column("skew"))
        high = int(np.clip(np.searchsorted(measured, skew), min(1, len(measured) - 1), len(measured) - 1))
        low = max(high - 1, 0)
        grids = [table.only("skew", measured[at]).blended(shape) for at in (low, high)]
        part = 0.0 if low == high else float(np.clip((skew - measured[low]) / (measured[high] - measured[low]), 0, 1))
        return Grid(grids[0].axes, grids[0].values * (1 - part) + grids[1].values * part)

    def _collective(self, operation: str, num_devices: int) -> Grid:
        """The engine's own kernel if it was measured on so many devices, else the library's, else the next device's."""
        key = f"collective/{operation}"
        return self._nearest(key, lambda table: table.axes[0][-1] >= num_devices, LIBRARIES).blended({"one": 1.0})

    def _exchange(self, kind: str, phase: str, experts: Experts, nodes: float) -> Grid:
        key = f"exchange/{kind}/{phase}"
        table = self._nearest(key, lambda table: nodes <= 1 or table.column("nodes").max() > 1)
        wanted = {"nodes": nodes, "hidden": experts.hidden_size, "topk": experts.experts_per_token}
        return table.blended({**wanted, "experts": experts.num_experts})


def _formats(kernel: str, number_format: str) -> list[list[str]]:
    """Keys of a kernel in this format, then in those whose efficiency it takes."""
    if number_format not in _NEAREST_FORMATS:
        raise DocumentInvalid(
            f"'{number_format}' is no number format of weights",
            where="number_format",
            hint="known: " + ", ".join(_NEAREST_FORMATS),
        )
    return [[f"{kernel}/{name}"] for name in (number_format, *_NEAREST_FORMATS[number_format])]


def _numbers(*sizes: Any) -> Any:
    """Plain numbers stay plain: their look-up makes no arrays."""
    return [float(size) if isinstance(size, int | float) else np.asarray(size, dtype=float) for size in sizes]


def _seconds(answer: Any, work: Any) -> Seconds:
    """No work takes no time, not a launch."""
    if isinstance(work, float):
        return np.asarray(answer if work > 0 else 0.0)
    return np.asarray(np.where(np.asarray(work) > 0, answer, 0.0))


def _whole_prompt(pairs: Any, window: int) -> Any:
    """Tokens of a prompt without cached tokens that has so many pairs, under the window of the measurements."""
    plain = (np.sqrt(1.0 + 8.0 * pairs) - 1.0) / 2.0
    if not window:
        return float(plain) if np.ndim(plain) == 0 else plain
    full = window * (window + 1.0) / 2.0
    answer = np.where(pairs > full, window + (pairs - full) / window, plain)
    return float(answer) if np.ndim(answer) == 0 else answer
