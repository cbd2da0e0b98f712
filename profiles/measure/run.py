"""The measurement of one device from end to end: cases in blocks, each kept in the journal once it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from profiles.importing.imported import Batch, Imported
from profiles.measure.case import Case, Prepared, key_of
from profiles.measure.case_list import CaseList, blocks_of, cases_of
from profiles.measure.clocks import LARGEST_MOVE, ClockReading, read_clocks
from profiles.measure.copies import link_of
from profiles.measure.device import MeasuredDevice, import_torch, open_device
from profiles.measure.measured_file import Kind, kind_of, observation_data, observation_of
from profiles.measure.operators import KINDS
from profiles.measure.plan import MeasurePlan
from profiles.measure.protocol import Outcome, error_words, time_block
from profiles.measure.provenance import environment_key, environment_of, sidecar
from profiles.measure.resume import Journal
from profiles.observations.records import LinkObservation, Observation, OperatorObservation

Progress = Callable[[int, int], None]
RAMP_S = 0.5
"""Clocks of an idle device need up to this long to rise."""


@dataclass(slots=True)
class _Run:
    plan: MeasurePlan
    device: MeasuredDevice
    journal: Journal
    environment_key: str
    batch: Batch
    ends_at_s: float
    clocks: ClockReading
    moved_blocks: int = 0
    num_blocks: int = 0
    resumed: int = 0
    throttled: set[str] = field(default_factory=set)
    lost: str = ""
    """Why the device no longer answers; nothing can be measured after that."""

    def expired(self) -> bool:
        return time.monotonic() > self.ends_at_s


def measure_device(plan: MeasurePlan, on_progress: Progress | None = None, journal: Journal | None = None) -> Imported:
    """Measure all cases of the plan on one device; failures and everything left out are part of the result.

    ``on_progress(done, total)`` after every block.  Raises DocumentInvalid without torch or the backend.
    """
    began_s = time.monotonic()
    device = open_device(plan.backend, flush_bytes=plan.flush_bytes)
    # An idle device's clock says nothing about the measurements.
    ramp_up(device)
    clocks = read_clocks(device)
    environment = environment_of(device, clocks)
    ends_at_s = began_s + plan.time_budget_s
    identity = environment_key(environment)
    run = _Run(plan, device, journal or Journal(), identity, Batch(environment), ends_at_s, clocks)
    found = cases_of(plan, device)
    for case, reason in found.impossible:
        _keep(run, case, observation_from(Outcome(case, None, error=reason)))
    _measure(run, found, on_progress)
    return _finished(run, found, began_s)


def observation_from(outcome: Outcome) -> OperatorObservation | LinkObservation:
    """The observation of one outcome; a copy becomes a link."""
    case = outcome.case
    if case.link is not None:
        return link_of(case, outcome.timing, outcome.error, outcome.detail)
    return OperatorObservation(
        operator=case.operator,
        name=case.name,
        timing=outcome.timing,
        phase=case.phase,
        dtype=case.dtype,
        shape=dict(case.shape),
        causal=case.causal,
        detail={**case.detail, **outcome.detail},
        ok=outcome.timing is not None,
        error=outcome.error,
    )


def prepare_case(case: Case, device: MeasuredDevice) -> Prepared:
    """Tensors of a case, made by its kind."""
    return KINDS[case.operator].prepare(case, device)


def ramp_up(device: MeasuredDevice, seconds: float = RAMP_S) -> None:
    """Keep a device busy until its clocks have risen; the CPU needs none of it."""
    if device.is_host:
        return
    torch = import_torch()
    with device.stream():
        left, right = device.normal((4096, 4096)), device.normal((4096, 4096))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            torch.mm(left, right)
            device.synchronize()


def _measure(run: _Run, found: CaseList, on_progress: Progress | None) -> None:
    waiting = [case for case in found.cases if not _resumed(run, case)]
    done, total = len(found.cases) - len(waiting), len(found.cases)
    usable_bytes = run.device.free_bytes() * run.plan.memory_part
    for block in blocks_of(waiting, run.plan.block_size, usable_bytes):
        if run.expired() or run.lost:
            break
        _measure_block(run, block)
        done += len(block)
        if on_progress is not None:
            on_progress(done, total)
    why = "the device was lost" if run.lost else f"the time budget of {run.plan.time_budget_s:g} s was spent"
    for case in waiting:
        if key_of(case.identity(), run.environment_key) not in run.journal.finished:
            found.leave_out(f"{case.operator}: {why}")


def _measure_block(run: _Run, block: Sequence[Case]) -> None:
    expired = partial(_Run.expired, run)
    try:
        outcomes = time_block(run.device, block, prepare_case, run.plan.protocol, expired)
    except RuntimeError as error:
        # An error of the device itself (an illegal address, a fallen bus) ends every later call as well.
        run.lost = error_words(error)
        return
    after = read_clocks(run.device)
    moved = run.clocks.moved(after)
    run.num_blocks += 1
    if moved is not None and moved > LARGEST_MOVE:
        run.moved_blocks += 1
        for outcome in outcomes:
            outcome.detail["clock_moved"] = round(moved, 3)
    if after.throttle_reasons:
        run.throttled.add(after.throttle_reasons)
    run.clocks = after
    for outcome in outcomes:
        _keep(run, outcome.case, observation_from(outcome))
    run.journal.settle()
    run.device.release()


def _keep(run: _Run, case: Case, observation: OperatorObservation | LinkObservation) -> None:
    kind = kind_of(observation)
    _add(run.batch, observation)
    key = key_of(case.identity(), run.environment_key)
    run.journal.record(key, {"kind": kind, "data": observation_data(observation)})


def _resumed(run: _Run, case: Case) -> bool:
    """Whether the journal holds the case; then it is part of the result without measuring."""
    entry = run.journal.finished.get(key_of(case.identity(), run.environment_key))
    if entry is None:
        return False
    try:
        kind: Kind = entry["kind"]
        _add(run.batch, observation_of(kind, entry["data"]))
    except (KeyError, TypeError, ValueError):
        # An entry of another version is measured again.
        return False
    run.resumed += 1
    return True


def _add(batch: Batch, observation: Observation) -> None:
    if isinstance(observation, LinkObservation):
        batch.links.append(observation)
    elif isinstance(observation, OperatorObservation):
        batch.operators.append(observation)


def _finished(run: _Run, found: CaseList, began_s: float) -> Imported:
    imported = Imported(tool="meshwright", tool_version=run.plan.tool_version, batches=[run.batch])
    imported.facts |= sidecar(run.device)
    num_failed = sum(not row.ok for row in run.batch.operators) + sum(not row.ok for row in run.batch.links)
    imported.facts |= {
        "wall_s": round(time.monotonic() - began_s, 1),
        "time_budget_s": run.plan.time_budget_s,
        "num_cases": len(found.cases) + len(found.impossible),
        "num_failed": num_failed,
        "num_resumed": run.resumed,
        "num_blocks": run.num_blocks,
        "min_repeats": run.plan.protocol.min_repeats,
        "stable_within": run.plan.protocol.stable_within,
    }
    after = run.clocks
    for name, value in (("power_w", after.power_w), ("temperature_c", after.temperature_c)):
        if value is not None:
            imported.facts[f"{name}_at_end"] = value
    for reason, count in sorted(found.left_out.items()):
        imported.skip(reason, count)
    _flags(imported, run, found)
    return imported


def _flags(imported: Imported, run: _Run, found: CaseList) -> None:
    if run.moved_blocks:
        what = f"the clock moved by more than {LARGEST_MOVE:.0%} in {run.moved_blocks} of {run.num_blocks} blocks"
        imported.flag("clock-moved", f"{what}; their observations carry clock_moved")
    if run.throttled:
        imported.flag("throttled", f"the driver reported throttle reasons: {', '.join(sorted(run.throttled))}")
    if run.lost:
        imported.flag("device-lost", f"the device stopped answering: {run.lost}; rerun with the same journal")
    if found.left_out:
        left = "; ".join(f"{count} of {reason}" for reason, count in sorted(found.left_out.items()))
        imported.flag("left-out", f"not measured: {left}")
