"""Seconds of an iteration: its operators (``iteration_operators.py``) looked up in a device's measured kernels.

All sizes of a ``Batch`` may be arrays, which broadcast; one call answers for many iterations at once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.serving.predict.iteration_operators import (
    Exchange,
    ExpertExchange,
    IterationOperators,
    LatentHeads,
    Matmul,
    Pass,
    RoutedExperts,
    Rows,
    State,
)
from profiles.serving_kernels.kernel_times import AttentionHeads

if TYPE_CHECKING:
    from planner.serving.words import CacheFormat
    from profiles.cluster import Pool
    from profiles.serving_kernels.kernel_times import KernelTimes

Array = NDArray[np.float64]
PARTS = ("matmuls", "attention", "experts", "collectives", "passes")
"""The kinds of work that an iteration's time is told by."""
BLOCK_SCALES = 1.2
"""Most that scales of blocks make an fp8 matmul slower: the tables of SGLang and TensorRT-LLM have 0.5 to 1.2 on H200
and B200 (a few shapes more).  vLLM's (5 to 24 below 1,000 rows) is of a Triton kernel that its releases do not choose
there: points of MiniMax-M2.5 were measured twice as fast as that table says, and agree with this bound."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What an iteration of one attention data-parallel rank holds, the busiest one's."""

    prompts: ArrayLike = 0.0
    """Prompts that are read in it."""
    prompt_tokens: ArrayLike = 0.0
    """New tokens of each of them."""
    cached_tokens: ArrayLike = 0.0
    """Tokens of each of them whose keys and values are there already."""
    sequences: ArrayLike = 0.0
    """Requests that get their next token, mean of all ranks; below 1 the busiest rank has one all the same."""
    context: ArrayLike = 1.0
    """Tokens before it, of each of them."""
    other_prompt_tokens: ArrayLike = 0.0
    """New prompt tokens of all other ranks together."""
    tokens_a_sequence: float = 1.0
    """Tokens that a decoding request brings: 1, and those that a draft proposed."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """``Batch`` as arrays of one shape."""

    prompts: Array
    prompt_tokens: Array
    cached_tokens: Array
    sequences: Array
    context: Array
    rows: dict[Rows, Array]
    all_tokens: Array
    all_prompt_tokens: Array


@dataclass(frozen=True, slots=True)
class Links:
    """How devices are joined: scale-up domains of ``domain`` devices, and each device's part of the network above."""

    domain: int
    network_bytes_per_s: float
    network_latency_s: float

    @classmethod
    def of_pool(cls, pool: Pool) -> Links:
        """Links of a pool's devices; above a domain without NICs there is the host link alone."""
        network = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s / pool.devices_per_node
        return cls(
            domain=pool.scale_up.domain_size,
            network_bytes_per_s=network or pool.host.link_bandwidth_bytes_per_s,
            network_latency_s=pool.nic_latency_s,
        )

    def collective_s(self, kernels: KernelTimes, work: Exchange, moved: Array) -> Array:
        """A collective inside a domain as measured; over several, first inside, then each device's share above.

        Above, a ring over the domains: ``(domains - 1) / domains`` of the share once, of a sum twice.
        """
        inside = min(work.num_devices, self.domain)
        seconds = kernels.collective_s(work.operation, moved, inside)
        domains = -(-work.num_devices // self.domain)
        if domains == 1:
            return seconds
        times = 2 if work.operation == "all_reduce" else 1
        share: Array = moved / inside * times * (domains - 1) / domains
        return seconds + share / self.network_bytes_per_s + times * (domains - 1) * self.network_latency_s


class IterationTimes:
    """Times of the iterations of one instance."""

    def __init__(
        self, operators: IterationOperators, kernels: KernelTimes, cache_format: CacheFormat, links: Links
    ) -> None:
        self.operators, self.kernels = operators, kernels
        self._cache_format, self._links = cache_format, links
        self._sends_to_experts = any(isinstance(work, ExpertExchange) for work, _ in operators.times)
        self._matmuls: dict[str, list[tuple[Matmul, int]]] = defaultdict(list)
        for work, count in operators.times:
            if isinstance(work, Matmul):
                self._matmuls[work.number_format].append((work, count))

    def seconds(self, batch: Batch) -> Array:
        """Device time of iterations, without what the host adds."""
        seconds: Array = np.sum(list(self.parts(batch).values()), axis=0)
        return seconds

    def parts(self, batch: Batch) -> dict[str, Array]:
        """The same by kind of work (``PARTS``)."""
        counted = self._counted(batch)
        parts = {name: np.zeros(counted.all_tokens.shape) for name in PARTS}
        parts["matmuls"] += self._matmul_s(counted)
        for work, count in self.operators.times:
            match work:
                case AttentionHeads() | LatentHeads():
                    parts["attention"] += count * self._attention_s(work, counted)
                case RoutedExperts():
                    parts["experts"] += count * self._experts_s(work, counted)
                case Exchange() | ExpertExchange():
                    parts["collectives"] += count * self._exchange_s(work, counted)
                case State():
                    moved = work.bytes_a_sequence * counted.sequences
                    moved = moved + work.bytes_a_prompt_token * counted.rows["prompt_tokens"]
                    parts["attention"] += count * _where(moved, self.kernels.pass_over_s(moved))
                case _:
                    pass
        parts["passes"] += self._pass_s(counted)
        return parts

    def _counted(self, batch: Batch) -> _Counted:
        layout = self.operators.layout
        prompts, each, cached, sequences, context, others = np.broadcast_arrays(
            *(
                np.asarray(value, dtype=np.float64)
                for value in (
                    batch.prompts,
                    batch.prompt_tokens,
                    batch.cached_tokens,
                    batch.sequences,
                    batch.context,
                    batch.other_prompt_tokens,
                )
            )
        )
        read = prompts * each
        busiest = np.where(sequences > 0, np.maximum(sequences, 1.0), 0.0)
        decoded = busiest * batch.tokens_a_sequence
        here = read / layout.cp
        rows: dict[Rows, Array] = {"tokens": here + decoded, "prompt_tokens": here, "sampled": decoded + prompts}
        everything = read + others + layout.attention_dp * sequences * batch.tokens_a_sequence
        return _Counted(prompts, each, cached, busiest, context, rows, everything, read + others)

    def _matmul_s(self, counted: _Counted) -> Array:
        total = np.zeros(counted.all_tokens.shape)
        for number_format, works in self._matmuls.items():
            columns, inner, counts = (
                np.array(values, dtype=np.float64)
                for values in zip(*((work.columns, work.inner, count) for work, count in works), strict=True)
            )
            rows = np.stack([counted.rows[work.rows].ravel() for work, _ in works])
            seconds = self._looked_up(np.maximum(rows, 1), columns[:, None], inner[:, None], number_format)
            total += (counts @ _where(rows, seconds)).reshape(total.shape)
        return total

    def _looked_up(self, rows: Array, columns: Array, inner: Array, number_format: str) -> Array:
        seconds = self.kernels.matmul_s(rows, columns, inner, number_format)
        if number_format == "fp8_block":
            plain = self.kernels.matmul_s(rows, columns, inner, "fp8")
            seconds = np.minimum(seconds, BLOCK_SCALES * plain)
        return seconds

    def _attention_s(self, work: AttentionHeads | LatentHeads, counted: _Counted) -> Array:
        cp, dcp = self.operators.layout.cp, self.operators.layout.dcp
        prompts, sequences = np.maximum(counted.prompts, 1), np.maximum(counted.sequences, 1)
        new, cached = np.maximum(counted.prompt_tokens, 1), counted.cached_tokens
        context = np.maximum(counted.context / dcp, 1)
        cache, kernels = self._cache_format, self.kernels
        if isinstance(work, LatentHeads):
            read = kernels.latent_prefill_s(prompts, new, cached, work.num_heads, cache)
            decoded = kernels.latent_decode_s(sequences, context, work.num_heads * dcp, cache)
        else:
            read = kernels.prefill_attention_s(prompts, new, cached, work, cache)
            decoded = kernels.decode_attention_s(sequences, context, _gathered(work, dcp), cache)
        return _where(counted.prompts * counted.prompt_tokens, read) / cp + _where(counted.sequences, decoded)

    def _experts_s(self, work: RoutedExperts, counted: _Counted) -> Array:
        tokens = counted.all_tokens
        least = np.maximum(tokens, 1)
        if not self._sends_to_experts:
            return _where(tokens, self.kernels.experts_s(least, work.experts, work.number_format))
        read, decoded = (
            self.kernels.experts_s(least, work.experts, work.number_format, exchange=exchange)
            for exchange in ("normal", "low_latency")
        )
        return _where(tokens, np.where(counted.all_prompt_tokens > 0, read, decoded))

    def _exchange_s(self, work: Exchange | ExpertExchange, counted: _Counted) -> Array:
        layout = self.operators.layout
        if isinstance(work, ExpertExchange):
            tokens = counted.rows["tokens"]
            read, decoded = (self._sent_s(work, np.maximum(tokens, 1), low_latency=low) for low in (False, True))
            return _where(tokens, np.where(counted.all_prompt_tokens > 0, read, decoded))
        rows = counted.rows[work.rows]
        if work.of_all_ranks:  # every rank's part is as large as the busiest one's: collectives are padded to it
            rows = rows * layout.attention_dp * layout.cp
        moved = np.maximum(rows, 1) * work.bytes_a_row
        return _where(rows, self._links.collective_s(self.kernels, work, moved))

    def _sent_s(self, work: ExpertExchange, tokens: Array, *, low_latency: bool) -> Array:
        dispatch, combine = (
            self.kernels.expert_exchange_s(phase, tokens, work.experts, self._links.domain, low_latency=low_latency)
            for phase in ("dispatch", "combine")
        )
        return dispatch + combine

    def _pass_s(self, counted: _Counted) -> Array:
        passes = [(work, count) for work, count in self.operators.times if isinstance(work, Pass)]
        rows = np.stack([counted.rows[work.rows].ravel() for work, _ in passes])
        each = np.array([work.bytes_a_row for work, _ in passes])
        counts = np.array([count for _, count in passes], dtype=np.float64)
        seconds = _where(rows, self.kernels.pass_over_s(np.maximum(rows, 1) * each[:, None]))
        return (counts @ seconds).reshape(counted.all_tokens.shape)


def _where(amount: Array, seconds: Array) -> Array:
    """No time where there is no work."""
    return np.where(amount > 0, seconds, 0.0)


def _gathered(heads: AttentionHeads, dcp: int) -> AttentionHeads:
    """Query heads under decode context parallelism: those of all devices that share the keys and values."""
    if dcp == 1:
        return heads
    return AttentionHeads(heads.num_heads * dcp, heads.num_kv_heads, heads.head_dim, heads.window)
