"""One engine instance that generates samples: events in the order of time.

All running samples advance together, one token an iteration.  ``clock`` counts these iterations, so that a sample that
starts at clock ``c`` with ``r`` tokens to generate ends at clock ``c + r``.  An iteration takes
``decode_s(running, mean context)``; between two events (a sample ends, starts, comes back from a tool) the number of
running samples is constant, and the time is re-evaluated at least every ``STRIDE`` tokens as contexts grow.

Where the contexts of what runs outgrow the cache, the sample that started last is set back: it waits in front of new
ones, and its whole context is read again when it goes on (vLLM: vllm/v1/core/sched/scheduler.py, preemption by
recomputation).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Protocol

STRIDE = 256.0
GRAIN = 8.0
"""Tokens within which samples end together at most: each is up to so many tokens late, of hundreds to thousands."""

_FULL = 0.95
"""Part of the cache down to which samples are set back and up to which they go on, so that they are not each time."""


class EngineTimes(Protocol):
    """What one instance takes, seconds."""

    @property
    def max_running(self) -> int:
        """Samples that run at once at most."""
        ...

    @property
    def cache_tokens(self) -> float:
        """Tokens whose keys and values it holds."""
        ...

    def decode_s(self, running: float, context: float) -> float:
        """One iteration of ``running`` samples with ``context`` tokens each on average."""
        ...

    def prefill_s(self, tokens: float) -> float:
        """``tokens`` of a prompt."""
        ...


@dataclass(order=True, slots=True)
class _Sample:
    ends_at: float
    number: int
    started_at: float = field(compare=False)
    before: float = field(compare=False)
    """Tokens of its context when it started to run (again)."""
    turns_left: int = field(compare=False, default=0)
    turn_tokens: float = field(compare=False, default=0.0)


@dataclass(slots=True)
class Replica:
    """An instance at one moment."""

    times: EngineTimes
    tool_latency_s: float = 0.0
    tool_tokens: float = 0.0
    prompt_share: float = 1.0
    """Part of a prompt that a sample reads itself: samples of one prompt share its keys and values."""
    grain: float = GRAIN
    """Tokens within which samples end together; fewer where responses are short."""
    now_s: float = 0.0
    clock: float = 0.0
    busy_s: float = 0.0
    """Time in which something ran."""
    running_seconds: float = 0.0
    """Integral of running samples over time."""
    generated: float = 0.0
    finished: list[float] = field(default_factory=list)
    """When each sample ended, seconds, in order."""
    _running: list[_Sample] = field(default_factory=list)
    _away: list[tuple[float, _Sample]] = field(default_factory=list)
    _set_back: list[_Sample] = field(default_factory=list)
    """Samples without room, the last one first to go on; ``ends_at`` is what is left of their turn."""
    _context: float = 0.0
    """Sum over running samples of ``before - started_at``: with ``clock`` a sample it is their contexts."""
    _started: int = 0
    _each_s: float = 1.0
    """Seconds of an iteration of what runs now."""

    @property
    def running(self) -> int:
        """Samples in an iteration now."""
        return len(self._running)

    @property
    def in_flight(self) -> int:
        """Samples that have started and not ended."""
        return len(self._running) + len(self._away) + len(self._set_back)

    def has_room(self, tokens: float) -> bool:
        """Whether one more sample with a prompt of ``tokens`` may start."""
        if self.in_flight == 0:
            return True
        return not self._set_back and self._fits(tokens)

    def _fits(self, tokens: float) -> bool:
        used = self._context + self.clock * self.running
        return self.running < self.times.max_running and used + tokens <= self.times.cache_tokens

    def start(self, prompt: float, response: float, turns: int = 1) -> None:
        """Start a sample: its prompt is read at once."""
        self._pass(self.times.prefill_s(prompt * self.prompt_share))
        each = response / turns
        self._admit(_Sample(self.clock + each, self._started, self.clock, prompt, turns - 1, each))
        self._started += 1

    def next_event_s(self) -> float | None:
        """When the next thing happens; None where nothing is in flight."""
        ends = [self._away[0][0]] if self._away else []
        if self._running:
            ahead = min(max(self._running[0].ends_at - self.clock, self.grain), STRIDE)
            self._each_s = self._iteration_s()
            ends.append(self.now_s + ahead * self._each_s)
        return min(ends) if ends else None

    def advance(self, until_s: float) -> None:
        """Let time pass, not beyond the next event, which was asked for just before."""
        passed = max(0.0, until_s - self.now_s)
        if self._running:
            tokens = passed / self._each_s
            self.clock += tokens
            self.generated += tokens * self.running
            self.busy_s += passed
            self.running_seconds += passed * self.running
        self.now_s = max(self.now_s, until_s)
        while self._running and self._running[0].ends_at <= self.clock + 1e-6:
            self._end(heapq.heappop(self._running))
        while self._away and self._away[0][0] <= self.now_s + 1e-9:
            self._back(heapq.heappop(self._away)[1])
        self._keep_within_cache()

    def _keep_within_cache(self) -> None:
        """Set back who started last while contexts are more than the cache holds; else let those go on who fit."""
        used = self._context + self.clock * self.running
        if self.running > 1 and used > self.times.cache_tokens:
            by_start = sorted(self._running, key=lambda each: each.number)
            while len(by_start) > 1 and used > _FULL * self.times.cache_tokens:
                last = by_start.pop()
                self._context -= last.before - last.started_at
                last.before += self.clock - last.started_at
                last.ends_at -= self.clock
                used -= last.before
                self._set_back.append(last)
            self._running = by_start
            heapq.heapify(self._running)
            return
        while self._set_back and (
            not self._running or self._fits(self._set_back[-1].before + (1 - _FULL) * self.times.cache_tokens)
        ):
            sample = self._set_back.pop()
            self._pass(self.times.prefill_s(sample.before))
            sample.started_at, sample.ends_at = self.clock, self.clock + sample.ends_at
            self._admit(sample)

    def _end(self, sample: _Sample) -> None:
        self._context -= sample.before - sample.started_at
        if not sample.turns_left:
            self.finished.append(self.now_s)
            return
        sample.before += sample.turn_tokens
        heapq.heappush(self._away, (self.now_s + self.tool_latency_s, sample))

    def _back(self, sample: _Sample) -> None:
        """A tool has answered: its tokens are read, and the sample goes on."""
        self._pass(self.times.prefill_s(self.tool_tokens) if self.tool_tokens else 0.0)
        sample.before += self.tool_tokens
        sample.turns_left -= 1
        sample.started_at, sample.ends_at = self.clock, self.clock + sample.turn_tokens
        self._admit(sample)

    def _admit(self, sample: _Sample) -> None:
        heapq.heappush(self._running, sample)
        self._context += sample.before - sample.started_at

    def _pass(self, seconds: float) -> None:
        """Time in which prompts are read and nobody gets a token."""
        self.now_s += seconds
        self.busy_s += seconds
        self.running_seconds += seconds * self.running

    def _iteration_s(self) -> float:
        count = len(self._running)
        context = self._context / count + self.clock + 0.5 * STRIDE
        return self.times.decode_s(count, context)
