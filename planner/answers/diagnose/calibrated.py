"""The calibration that makes a plan agree with its run: what ``profile calibrate`` would fit to its logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.answers.diagnose.changed import estimated_s
from planner.answers.diagnose.reading import LogRun
from planner.backends.asked import problem_of, software_of
from planner.errors import MeshwrightError
from planner.evidence.calibration.calibrate import calibrate
from planner.evidence.calibration.document import Calibration
from planner.evidence.calibration.log_runs import Said, log_runs, source_name
from planner.plan.plan import Plan
from profiles.observation_store.batch import StoredBatch, batch_id_of
from profiles.observations.records import IterationObservation


def calibration_of(plan: Plan, logs: Sequence[LogRun]) -> Calibration | None:
    """Fit to the logs, whose arguments are completed from the plan; None where no run can be predicted.

    One run fits one factor of time and one of memory: it holds for this model and layout, and for no other.
    """
    strategy, workload = plan.chosen(), plan.problem.workload
    own = {name: value for name, value in strategy.to_dict().items() if isinstance(value, (int, str, bool))}
    said = Said(
        model=plan.problem.model,
        cluster=plan.problem.cluster,
        strategy={**own, "dp": strategy.dp},
        global_batch_size=workload.global_batch_size,
        sequence_length=workload.sequence_length,
        software_version=plan.release or software_of(plan).release.version,
    )
    batches = [batch for log in logs if log.timed for batch in _batches(log, plan)]
    try:
        runs, _ = log_runs(batches, said)
        sources = {source_name(batch): batch.source.file_sha256 or batch.batch_id for batch, _ in batches}
        outcome = calibrate([replace(run, backend=software_of(plan).spelled) for run in runs], sources)
    except MeshwrightError:
        return None
    found = outcome.calibrations
    return found[0] if found and found[0].factors.changed() else None


def calibrated_step_s(plan: Plan, calibration: Calibration) -> float | None:
    """The step time of the plan's strategy under the calibration; None where its back-end refuses to predict it."""
    problem = problem_of(plan).model_copy(update={"calibration": calibration.applied()})
    try:
        return estimated_s(plan, problem, plan.chosen())
    except MeshwrightError:
        return None


def _batches(log: LogRun, plan: Plan) -> list[tuple[StoredBatch, Sequence[IterationObservation]]]:
    """The batch that an import of the log would store; its device is the plan's where the log names none."""
    source, imported = log.result.source, log.result.imported
    if source is None or imported is None:
        return []
    found: list[tuple[StoredBatch, Sequence[IterationObservation]]] = []
    for part, batch in enumerate(imported.batches):
        readings = [_complete(each, plan) for each in batch.iterations if each.ok]
        batch_id = batch_id_of(source, batch.environment, log.result.given, part)
        if readings:
            found.append((StoredBatch(batch_id=batch_id, environment=batch.environment, source=source), readings))
    return found


def _complete(each: IterationObservation, plan: Plan) -> IterationObservation:
    """A reading with the plan's sizes where the log states none."""
    strategy = plan.chosen()
    return replace(
        each,
        num_devices=each.num_devices or strategy.world_size,
        micro_batch_size=each.micro_batch_size or strategy.micro_batch_size,
    )
