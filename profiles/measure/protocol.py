"""The protocol that times a block of cases, so that the numbers can be trusted.

1. Each case warms up until the medians of two successive batches differ by less than ``stable_within``.
2. The cases of a block are then sampled in turn (round-robin), so that drift does not follow the shape.
3. Before every sample the last-level cache is overwritten, outside the timed part.
4. Short calls are timed as graphs, (t_K - t_1) / (K - 1), over several sets of tensors that together exceed the cache;
   long ones, and those that cannot be captured, with events; the CPU with the host clock.
5. A case ends with ``min_repeats`` samples or ``min_time_s`` of them (never below ``fewest_samples``).

A case that fails is a result with its error.  Sources: ai-dynamo/aiconfigurator collector (warm-up, graph with
fallback to eager, failures recorded); Hoefler and Belli, SC'15 (medians and quantiles, not means).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from profiles.measure.case import Case, Prepared
from profiles.measure.device import MeasuredDevice
from profiles.measure.graph import can_capture, capture
from profiles.measure.timer import seconds_of
from profiles.observations.records import Scalar
from profiles.observations.timing import Timing

LARGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Protocol:
    """The numbers of the protocol; a test or a hurried user may lower them, and the profile records them."""

    stable_within: float = 0.01
    warm_up_batch: int = 5
    longest_warm_up_s: float = 0.25
    min_repeats: int = 20
    min_time_s: float = 0.05
    fewest_samples: int = 5
    graph_below_s: float = 1e-3
    graph_time_s: float = 2e-4
    largest_graph: int = 64
    most_sets: int = 16


@dataclass(slots=True)
class Outcome:
    """One finished case: a time, or the reason why there is none."""

    case: Case
    timing: Timing | None
    detail: dict[str, Scalar] = field(default_factory=dict)
    error: str = ""


@dataclass(slots=True)
class _Trial:
    case: Case
    calls: list[Callable[[], object]]
    detail: dict[str, Scalar]
    sample: Callable[[], float]
    samples: list[float] = field(default_factory=list)
    error: str = ""

    def finished(self, protocol: Protocol) -> bool:
        if self.error or len(self.samples) >= protocol.min_repeats:
            return True
        # The median, not the sum: one interrupted sample must not end the case early.
        enough = len(self.samples) >= protocol.fewest_samples
        return enough and len(self.samples) * median(self.samples) >= protocol.min_time_s


def time_block(
    device: MeasuredDevice,
    block: Sequence[Case],
    prepare: Callable[[Case, MeasuredDevice], Prepared],
    protocol: Protocol,
    expired: Callable[[], bool],
) -> list[Outcome]:
    """Time the cases of one block together.  Cases not begun when ``expired()`` turns true are left out."""
    trials: list[_Trial] = []
    with device.stream():
        for case in block:
            if expired():
                break
            trials.append(_begin(device, case, prepare, protocol))
        while waiting := [trial for trial in trials if not trial.finished(protocol)]:
            for trial in waiting:
                _sample(trial)
        device.synchronize()
    return [_outcome(trial) for trial in trials]


def timing_of(samples: Sequence[float]) -> Timing:
    """Median and quantiles (nearest rank) of positive samples in seconds."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return Timing(
        time_s=median(ordered),
        statistic="median",
        num_samples=len(ordered),
        min_s=ordered[0],
        p10_s=ordered[round(0.1 * last)],
        p90_s=ordered[round(0.9 * last)],
        max_s=ordered[-1],
    )


def error_words(error: BaseException) -> str:
    """One line for the record: kind of error and its first line, shortened."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    kind = "out of memory" if "outofmemory" in type(error).__name__.casefold() else type(error).__name__
    return f"{kind}: {first}"[:LARGEST_TEXT]


def _begin(
    device: MeasuredDevice, case: Case, prepare: Callable[[Case, MeasuredDevice], Prepared], protocol: Protocol
) -> _Trial:
    """Tensors, warm-up, and the way to take a sample."""
    trial = _Trial(case, [], {}, lambda: 0.0)
    try:
        prepared = prepare(case, device)
        trial.detail = dict(prepared.detail)
        usual_s, stable = _warm_up(device, prepared.call, protocol)
        if not stable:
            trial.detail["warm_up_stable"] = False
        trial.calls = [prepared.call]
        if not (_wants_graph(device, case, usual_s, protocol) and _as_graph(device, trial, prepare, usual_s, protocol)):
            _as_events(device, trial)
    except (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError, AssertionError) as error:
        _fail(trial, error)
    return trial


def _fail(trial: _Trial, error: BaseException) -> None:
    trial.error = error_words(error)
    trial.calls.clear()


def _warm_up(device: MeasuredDevice, call: Callable[[], object], protocol: Protocol) -> tuple[float, bool]:
    """(median of the last batch in seconds, whether two successive medians agreed)."""
    first_s = seconds_of(device, call)
    until = time.monotonic() + protocol.longest_warm_up_s
    size = protocol.warm_up_batch if first_s * protocol.warm_up_batch < protocol.longest_warm_up_s / 2 else 1
    before = None
    while True:
        now = median(seconds_of(device, call) for _ in range(size))
        if before is not None and abs(now - before) <= protocol.stable_within * before:
            return now, True
        if time.monotonic() > until:
            return now, False
        before = now


def _wants_graph(device: MeasuredDevice, case: Case, usual_s: float, protocol: Protocol) -> bool:
    return case.graph and usual_s < protocol.graph_below_s and can_capture(device)


def _as_events(device: MeasuredDevice, trial: _Trial) -> None:
    call = trial.calls[0]

    def sample() -> float:
        device.flush_cache()
        return seconds_of(device, call)

    trial.sample = sample
    trial.detail["method"] = "host clock" if device.is_host else "events"
    trial.detail["cache"] = "cold" if device.flush_bytes else "warm"


_NOISY_PAIRS = 5
"""Pairs of replays that may be spoilt by noise before a sample is given up: one bound among differences would be an
outlier of the launch's size."""


def _as_graph(
    device: MeasuredDevice,
    trial: _Trial,
    prepare: Callable[[Case, MeasuredDevice], Prepared],
    usual_s: float,
    protocol: Protocol,
) -> bool:
    """Capture one call and K calls; False where that is not possible."""
    size = max(trial.case.memory_bytes, 1)
    sets = min(max(-(-device.flush_bytes // size), 1), protocol.most_sets)
    for _ in range(sets - 1):
        trial.calls.append(prepare(trial.case, device).call)
        trial.calls[-1]()
    copies = min(max(round(protocol.graph_time_s / usual_s) + 1, 4), protocol.largest_graph)
    one = capture(device, trial.calls[:1])
    many = capture(device, [trial.calls[turn % sets] for turn in range(copies)]) if one is not None else None
    if one is None or many is None:
        del trial.calls[1:]
        return False

    def sample() -> float:
        many_s = math.inf
        for _ in range(_NOISY_PAIRS):
            device.flush_cache()
            one_s = seconds_of(device, one)
            device.flush_cache()
            many_s = seconds_of(device, many)
            if many_s > one_s:
                return (many_s - one_s) / (copies - 1)
        # Noise hides the difference again and again: the mean over the copies is then the honest upper bound.
        return many_s / copies

    trial.sample = sample
    trial.detail |= {"method": "graph", "copies": copies}
    trial.detail["cache"] = "cold" if sets * size >= device.flush_bytes else "partly warm"
    return True


def _sample(trial: _Trial) -> None:
    try:
        seconds = trial.sample()
    except RuntimeError as error:
        _fail(trial, error)
        return
    if seconds > 0:
        trial.samples.append(seconds)
    else:
        trial.error = "the timer saw no time pass"


def _outcome(trial: _Trial) -> Outcome:
    timing = None if trial.error else timing_of(trial.samples)
    return Outcome(trial.case, timing, trial.detail, trial.error)
