"""What a scheduler makes of iterations: one instance in steady state, closed form, for many loads at once.

In flight are ``b`` requests, of which ``d`` decode.  An interval between two tokens of a request is a decoding
iteration and, with chance ``P`` that prompts arrived for it, what their chunks add::

    T = decode(d) + P x prompts(n),     n = rate x chunks x T / P chunks in an iteration that reads

A request waits for an iteration to begin, runs its own chunks beside those of others, then decodes ``passes``
intervals.  Little's law closes it: ``b = rate x (ttft + passes x T)`` (solved by damped iteration).  Requests beyond
what memory or ``max_num_sequences`` lets run wait for a place before that.  In an open loop requests come at random
times, and wait for the rest of the iteration that runs then: ``sum p t^2 / 2 sum p t`` over decoding and prompt
iterations.

``planner.serving.predict.simulate`` runs the iterations one by one; ``tests`` holds the two against each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.serving.predict.instance_times import InstanceTimes

Array = NDArray[np.float64]
_ROUNDS = 14


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Arrays over loads; times in seconds, of one instance."""

    requests_per_s: Array
    running: Array
    """Requests that decode."""
    interval: Array
    """Between two iterations of a request's decoding."""
    wait: Array
    """For a place among the running, then for an iteration to begin."""
    reading: Array
    """Own chunks, to the first token."""
    prompt_share: Array
    """Part of iterations that read prompts."""
    decode_s: Array
    prompt_s: Array
    """What prompts add to an iteration that reads some."""
    placed: Array
    """Requests that run at once, at most."""

    @property
    def ttft(self) -> Array:
        """Mean time to the first token."""
        return self.wait + self.reading


def closed_loop(
    times: InstanceTimes, loads: Array, places: float, *, waves: float = math.inf, alike: bool = False
) -> SteadyState:
    """``loads`` requests in flight, a new one whenever one ends; ``places``: that memory lets run.

    ``waves``: requests of the run for each in flight: the first of them arrive together.  ``alike``: all outputs are
    equally long, so that requests which began together end together, and their successors arrive together again.
    """
    most = max(min(places, float(times.max_sequences)), 1.0)
    inside = np.minimum(loads, most)
    state = _inside(times, inside)
    if alike or waves < math.inf:
        state = _with_waves(times, state, inside, waves, alike=alike)
    queued = np.maximum(loads - inside, 0.0) / state.requests_per_s
    return replace(state, wait=state.wait + queued, placed=inside)


def _inside(times: InstanceTimes, inside: Array) -> SteadyState:
    lanes, passes = times.lanes, times.passes
    apart = times.behaviour.policy == "prefill_first"
    others = np.maximum(inside - 1, 0.0) / np.maximum(inside, 1.0)
    busy = inside > 1
    decode, one, first, full = times.all_at(inside / lanes)
    decode = decode * (passes > 0)
    interval, long, reading = decode, first, first * times.chunks
    wait = share = np.zeros_like(inside)
    rate = inside / (reading + passes * interval)
    for _ in range(_ROUNDS):
        decode, one, each, full = times.all_at(np.clip(rate * passes * interval, 0.0, inside) / lanes)
        decode = decode * (passes > 0)
        chunks = rate * times.chunks * others / times.pipeline
        share = _share_with_prompts(chunks, decode, long)
        together = np.maximum(chunks * interval / np.maximum(share, 1e-12), 1.0)
        long = 0.5 * (long + times.prompt_s(together, one, each, full))
        extra = long if apart else np.maximum(long - decode, 0.0)
        interval = decode + share * extra
        wait = times.behaviour.wait_iterations * interval * busy + times.first_token_s
        reading = times.chunks * times.prompt_s(1 + chunks * interval, one, each, full)
        rate = 0.5 * (rate + inside / np.maximum(wait + reading + passes * interval, 1e-12))
    running = np.clip(rate * passes * interval, 0.0, inside)
    return SteadyState(rate, running, interval, wait, reading, share, decode, long, inside)


def _with_waves(times: InstanceTimes, state: SteadyState, inside: Array, waves: float, *, alike: bool) -> SteadyState:
    """Requests that arrive together: read up to the token budget an iteration, one iteration after the other.

    Where prompts go first and outputs are alike, every wave is such a one, and nothing is read while it decodes.
    Where decoding goes on beside them, those that one iteration read end together: later waves wait for one iteration.
    """
    full = times.at(times.full, inside / times.lanes / 2)
    budget = times.ranks * times.prompts_at_once
    iterations = np.maximum(inside * times.chunks / budget, 1.0)
    whole = np.where(inside > 1, iterations * full, state.reading)
    together = np.where(
        inside * times.chunks > budget, (whole + full) / 2, times.prompt_s(inside, *times.all_at(inside * 0)[1:])
    )
    first = np.maximum(together * np.where(iterations > 1, 1.0, times.chunks), state.reading) + state.wait
    later, interval, rate = state.ttft, state.interval, state.requests_per_s
    if alike and times.behaviour.policy == "prefill_first":
        later = first
        decode = times.at(times.decode, inside / times.lanes)
        interval = np.where(inside > 1, decode + whole / 2 / max(times.passes, 1.0), interval)
        rate = inside / (first + times.passes * interval)
    elif alike:
        block = times.chunks * times.prompt_s(np.minimum(inside, budget), *times.all_at(inside / times.lanes)[1:])
        later = np.maximum(state.wait + block, state.ttft)
    share = 0.0 if waves == math.inf else 1 / max(waves, 1.0)
    seen = share * first + (1 - share) * later
    return replace(state, requests_per_s=rate, interval=interval, reading=np.maximum(seen - state.wait, 0.0))


def _share_with_prompts(chunks_per_s: Array, decode: Array, long: Array) -> Array:
    """Part of iterations that read prompts, where a chunk waits for the next iteration to begin.

    After an iteration of ``t`` seconds the next one reads with chance ``1 - exp(-chunks_per_s t)``: a chain of the two
    kinds, whose stationary share this is.
    """
    after_short, after_long = -np.expm1(-chunks_per_s * decode), -np.expm1(-chunks_per_s * long)
    share: Array = after_short / np.maximum(1 - after_long + after_short, 1e-12)
    return share


def prompts_only(times: InstanceTimes, loads: Array) -> SteadyState:
    """A prefill instance: prompts one behind the other, or together up to the token budget."""
    ranks = times.ranks
    read = np.minimum(loads, ranks * times.prompts_at_once)
    zero = np.zeros_like(loads)
    one, each, full = (times.at(curve, zero) for curve in (times.one_prompt, times.prompt_each, times.full))
    ranks_read = np.minimum(read, ranks)
    single = one + (ranks_read - 1) / max(ranks - 1, 1) * (each - one)
    deeper = each + (read / ranks - 1) / max(times.prompts_at_once - 1, 1e-9) * (full - each)
    seconds = np.where(read > ranks, deeper, single) * times.chunks
    rate = read / seconds
    queued = np.maximum(loads - read, 0.0) / rate
    wait = queued + times.first_token_s + 0.5 * seconds * (loads > 1)
    return SteadyState(rate, zero, zero, wait, seconds, zero + 1, zero, seconds, read)


def decode_only(times: InstanceTimes, loads: Array, places: float) -> SteadyState:
    """A decode instance: keys and values arrive with the requests."""
    most = max(min(places, float(times.max_sequences)), 1.0)
    inside = np.minimum(loads, most)
    decode = times.at(times.decode, inside / times.lanes)
    rate = inside / np.maximum(times.passes * decode, 1e-12)
    zero = np.zeros_like(loads)
    wait = np.maximum(loads - inside, 0.0) / rate
    return SteadyState(rate, inside, decode, wait, zero, zero, decode, zero, inside)
