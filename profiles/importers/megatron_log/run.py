"""One run of a log: readings line by line, and the facts that hold for all of them.

A run begins with a new block of arguments, or where the iteration numbers start again.  Facts (batch sizes, degrees,
number of devices) may be printed before or after the first reading: they are filled in when the run ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from profiles.importing.environments import environment_of, given_whole
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment
from profiles.observations.records import IterationObservation, Scalar
from profiles.observations.timing import Timing

START_UP = "first reading of a run: it includes start-up"
REPEATED = "line printed twice"


@dataclass(slots=True)
class Run:
    """One training run as far as the log has been read."""

    options: ReadOptions
    framework: str = ""
    model: str = ""
    device_reported: str = ""
    num_devices: int | None = None
    global_batch_size: int | None = None
    micro_batch_size: int | None = None
    sequence_length: int | None = None
    log_interval: int | None = None
    strategy: dict[str, Scalar] = field(default_factory=dict)
    detail: dict[str, Scalar] = field(default_factory=dict)
    library_version: str = ""
    timed: list[IterationObservation] = field(default_factory=list)
    memory: list[IterationObservation] = field(default_factory=list)
    out_of_memory: IterationObservation | None = None
    num_out_of_memory: int = 0
    iterations_seen: dict[str, int] = field(default_factory=dict)
    """Last iteration by kind of line: each kind counts on its own."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read from it."""
        return not self.timed and not self.memory and self.out_of_memory is None

    @property
    def last_iteration(self) -> int | None:
        """The last iteration of any kind of line."""
        return max(self.iterations_seen.values(), default=None)

    def starts_again(self, kind: str, iteration: int) -> bool:
        """Whether a line of this kind with this number belongs to a new run."""
        last = self.iterations_seen.get(kind)
        return last is not None and iteration < last

    def is_repeated(self, kind: str, iteration: int) -> bool:
        """Whether the last line of this kind had the same number (each rank prints it, or ``tee`` did)."""
        return self.iterations_seen.get(kind) == iteration

    def mean_of(self, time_s: float, kind: str, iteration: int) -> Timing:
        """The time of a line that reports the mean since the line before it."""
        last = self.iterations_seen.get(kind)
        since = iteration - last if last is not None and iteration > last else self.log_interval
        return Timing(time_s, "single" if since == 1 else "mean", since)

    def finish(self, imported: Imported) -> Batch | None:
        """The run's observations with its facts; None when it has none.  Drops the reading that includes start-up."""
        if self.is_empty:
            return None
        timed = self.timed
        if len(timed) > 1:
            imported.skip(START_UP)
            timed = timed[1:]
        elif timed:
            imported.flag("start-up-included", "the only reading of a run includes its start-up", timed[0].row)
        found = [self._with_facts(each) for each in (*timed, *self.memory)]
        if self.out_of_memory is not None:
            detail = {**self.out_of_memory.detail, "num_reports": self.num_out_of_memory}
            found.append(self._with_facts(replace(self.out_of_memory, detail=detail)))
        return Batch(self._environment(), iterations=found)

    def devices(self) -> int | None:
        """Number of devices, printed or given by the user."""
        return self.num_devices or given_whole(self.options, "num_devices")

    def batch(self) -> int | None:
        """Samples a step, printed or given by the user."""
        return self.global_batch_size or given_whole(self.options, "global_batch_size")

    def length(self) -> int | None:
        """Tokens a sample, printed or given by the user."""
        return self.sequence_length or given_whole(self.options, "sequence_length")

    def _with_facts(self, each: IterationObservation) -> IterationObservation:
        return replace(
            each,
            model=self.options.given.get("model", self.model),
            strategy=self.strategy,
            num_devices=self.devices(),
            global_batch_size=each.global_batch_size or self.batch(),
            micro_batch_size=self.micro_batch_size or given_whole(self.options, "micro_batch_size"),
            sequence_length=each.sequence_length or self.length(),
            detail={**self.detail, **each.detail},
        )

    def _environment(self) -> Environment:
        return environment_of(
            self.options,
            self.device_reported,
            num_devices=self.devices(),
            framework=self.framework,
            communication_library="nccl" if self.library_version else "",
            communication_library_version=self.library_version,
        )
