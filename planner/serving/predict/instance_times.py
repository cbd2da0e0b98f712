"""Times of an instance's iterations at the lengths of one traffic, as functions of the requests that decode.

Four curves over the decoding requests of a rank, read by linear interpolation:

* ``decode``: nothing but decoding;
* ``one_prompt``: beside it a chunk of one prompt, on one attention data-parallel rank;
* ``prompt_each``: a chunk on every rank;
* ``full``: prompts up to the token budget, on every rank.

Where prompts run in iterations of their own, the last three hold no decoding requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.serving.layout import InstanceGroup
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.iteration_time import Batch, IterationTimes
from planner.serving.predict.lengths import RequestSizes

Array = NDArray[np.float64]
_SEQUENCES = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])


@dataclass(frozen=True, slots=True)
class InstanceTimes:
    """Curves over decoding requests of one rank, seconds."""

    behaviour: Behaviour
    num_layers: int
    ranks: int
    """Attention data-parallel ranks."""
    pipeline: int
    """Pipeline stages, each of which has a batch of its own in flight."""
    max_sequences: int
    """Requests of the instance that run at once."""
    chunk: float
    """Prompt tokens of one chunk."""
    chunks: int
    """Chunks of a prompt."""
    prompts_at_once: float
    """Chunks that the token budget of a rank holds."""
    passes: float
    """Iterations from a request's first token to its last."""
    output_tokens: float
    sequences: Array
    decode: Array
    one_prompt: Array
    prompt_each: Array
    full: Array
    curves: Array
    """The four of them as rows."""

    @property
    def first_token_s(self) -> float:
        """Seconds of a request before and after its own iterations."""
        return self.behaviour.request_s + self.behaviour.request_s_a_layer * self.num_layers

    @property
    def lanes(self) -> int:
        """Batches that decode at once, on ranks and in stages."""
        return self.ranks * self.pipeline

    def at(self, curve: Array, sequences: Array) -> Array:
        """A curve at these decoding requests of a rank."""
        return np.interp(sequences, self.sequences, curve)

    def all_at(self, sequences: Array) -> tuple[Array, Array, Array, Array]:
        """The four curves at these decoding requests of a rank: decode, one_prompt, prompt_each, full."""
        right = np.clip(np.searchsorted(self.sequences, sequences), 1, self.sequences.size - 1)
        left = right - 1
        low, high = self.sequences[left], self.sequences[right]
        part = np.clip((sequences - low) / (high - low), 0.0, 1.0)
        curves = self.curves
        decode, one, each, full = curves[:, left] + part * (curves[:, right] - curves[:, left])
        return decode, one, each, full

    def prompt_s(self, chunks: Array, one: Array, each: Array, full: Array) -> Array:
        """An iteration that reads ``chunks`` (at least 1) of prompts, spread over the ranks.

        It lasts as its busiest rank, and work that all ranks share grows with the ranks that read.  ``one``, ``each``,
        ``full``: the curves of ``all_at``.
        """
        readers = np.clip(chunks, 1.0, self.ranks)
        seconds = one + (readers - 1) / max(self.ranks - 1, 1) * (each - one)
        deeper = np.maximum(chunks / self.ranks - 1, 0.0) / max(self.prompts_at_once - 1, 1e-9)
        seconds = seconds + np.minimum(deeper, 1.0) * (full - each)
        most = self.ranks * self.prompts_at_once
        return np.where(chunks > most, full * chunks / most, seconds)


def instance_times(
    times: IterationTimes,
    group: InstanceGroup,
    sizes: RequestSizes,
    behaviour: Behaviour,
    device_bytes: float,
    *,
    acceptance: float | None = None,
) -> InstanceTimes:
    """Look the four curves up."""
    layout, settings = group.layout, group.settings
    limits, ranks = behaviour.limits(device_bytes), layout.attention_dp
    budget = float(limits.max_num_batched_tokens)
    if settings.max_num_batched_tokens is not None:
        budget = max(settings.max_num_batched_tokens / ranks, 1.0)
    chunks = math.ceil(sizes.new_tokens / budget)
    chunk = sizes.new_tokens / chunks
    most = max(budget / chunk, 1.0)
    cached = sizes.cached_tokens + (sizes.new_tokens - chunk) / 2
    drafted = settings.speculation.num_tokens if settings.speculation else 0
    sequences = _SEQUENCES if layout.attention_dp * layout.pp == 1 else np.append(1 / ranks / layout.pp, _SEQUENCES)
    reads = behaviour.policy == "prefill_first"
    beside = np.zeros_like(sequences) if reads else sequences
    zeros = np.zeros_like(sequences)
    stacked = Batch(
        prompts=np.concatenate([zeros, zeros + 1, zeros + 1, zeros + most]),
        prompt_tokens=np.concatenate([zeros, *[zeros + chunk] * 3]),
        cached_tokens=cached,
        sequences=np.concatenate([sequences, beside, beside, beside]),
        context=sizes.context,
        other_prompt_tokens=np.concatenate(
            [zeros, zeros, zeros + (ranks - 1) * chunk, zeros + (ranks - 1) * most * chunk]
        ),
        tokens_a_sequence=1.0 + drafted,
    )
    decode, one, each, full = np.split(times.seconds(stacked), 4)
    if drafted:
        decode = decode * (1 + drafted * draft_share(times, group))
    looked_up = InstanceTimes(
        behaviour=behaviour,
        num_layers=times.operators.num_layers,
        ranks=ranks,
        pipeline=layout.pp,
        max_sequences=settings.max_num_sequences or limits.max_num_sequences * ranks,
        chunk=chunk,
        chunks=chunks,
        prompts_at_once=most,
        passes=max(sizes.output_tokens - 1, 0.0) / accepted_tokens(drafted, acceptance),
        output_tokens=sizes.output_tokens,
        sequences=sequences,
        decode=decode,
        one_prompt=one,
        prompt_each=each,
        full=full,
        curves=np.stack([decode, one, each, full]),
    )
    return as_behaves(looked_up, behaviour)


def as_behaves(looked_up: InstanceTimes, behaviour: Behaviour) -> InstanceTimes:
    """Looked-up curves with what the engine adds: its factors, and its host's seconds."""
    host = behaviour.host_s + behaviour.host_s_a_sequence * looked_up.sequences * looked_up.ranks
    decode = looked_up.decode * behaviour.decode_factor
    least = decode if behaviour.policy != "prefill_first" else 0.0
    one, each, full = (
        np.maximum(curve * behaviour.prompt_factor, least) + host
        for curve in (looked_up.one_prompt, looked_up.prompt_each, looked_up.full)
    )
    decode = decode + host
    return replace(
        looked_up,
        behaviour=behaviour,
        decode=decode,
        one_prompt=one,
        prompt_each=each,
        full=full,
        curves=np.stack([decode, one, each, full]),
    )


def accepted_tokens(drafted: int, acceptance: float | None) -> float:
    """Tokens that a pass gives: the model's own and those drafted ones that it accepts, up to the first refused.

    ``(1 - a^(k + 1)) / (1 - a)`` for ``k`` drafted tokens, each accepted with chance ``a`` (arXiv 2211.17192).
    """
    if not drafted:
        return 1.0
    chance = 0.7 if acceptance is None else acceptance
    return drafted + 1.0 if chance >= 1 else (1 - chance ** (drafted + 1)) / (1 - chance)


def draft_share(times: IterationTimes, group: InstanceGroup) -> float:
    """Time of one drafted token over a pass of the model: a layer of it (MTP, EAGLE); nothing for n-grams."""
    speculation = group.settings.speculation
    if speculation is None or speculation.method == "ngram":
        return 0.0
    return 1.0 / times.operators.num_layers if speculation.method != "draft_model" else 0.1
