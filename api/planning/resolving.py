"""The documents that a question means: names become documents, limits are checked, the problem is complete.

A name is looked up among stored documents, then in the catalogue: never on disk, never on the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from api.jobs.board import PlanRequest
from api.settings import Settings
from api.wire.questions import EstimateQuestion, PlanQuestion, Question
from planner.answers.sensitivity import LEVERS
from planner.backends.registry import software
from planner.errors import NotFound
from planner.evidence.calibration.document import Calibration
from planner.model.builtin import builtin_model, builtin_models
from planner.model.load import model_from_data
from planner.model.spec import ModelSpec
from planner.operations.question import asked_problem
from planner.question.factors import AppliedCalibration
from planner.question.problem import ANY, Constraints, Objective, Problem, Workload
from planner.store.service import ServiceStore
from planner.strategy.fields import FORBIDDABLE, PINNABLE, full_name
from planner.strategy.spelling import did_you_mean
from planner.strategy.text import checked_fields
from profiles.catalogue import builtin_clusters, load_cluster, read_cluster
from profiles.cluster import Cluster
from profiles.device import Device
from profiles.prediction.reference import ProfileReference
from profiles.scaling import scale_cluster
from profiles.validation import Finding, FindingsInvalid, read_document, require

LARGEST_COUNT = 10**12
INLINE_NAME = "model"
MOST_NAME = 128


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves the names of one service; every method may ask the database."""

    store: ServiceStore
    settings: Settings

    def plan_request(self, question: PlanQuestion) -> PlanRequest:
        """The complete request of a planning question.  Raises FindingsInvalid, NotFound, DocumentInvalid."""
        objective = question.objective.model_copy(update={"prefer": question.prefer or "recommended"})
        return PlanRequest(
            problem=self.problem(question.model_copy(update={"objective": objective})),
            top_k=question.top_k,
            time_limit_s=question.time_limit_s,
            seed=question.seed,
            priority=question.priority,
        )

    def estimate_payload(self, question: EstimateQuestion) -> dict[str, Any]:
        """The problem and checked strategy of a what-if."""
        problem = self.problem(question)
        for lever, factor in question.scale.items():
            problem = LEVERS[lever](problem, factor)
        strategy = checked_fields(question.strategy, "/strategy")
        return {
            "problem": problem.model_dump(mode="json"),
            "strategy": strategy,
            "chunk_layers": question.chunk_layers,
            "launched": question.launched,
            "include_problem": question.include_problem,
        }

    def problem(self, question: Question) -> Problem:
        """The problem that a question means."""
        cluster = self.cluster(question.cluster, question.devices)
        device = cluster.pools[0].device
        profile, constraints = self.profile(question.profile, device), checked_constraints(question.constraints)
        return asked_problem(
            self.model(question.model),
            cluster,
            checked_workload(question.workload),
            constraints,
            _checked_objective(question.objective, question.constraints),
            profile,
            _calibration(question.calibration),
        )

    def model(self, part: str | Mapping[str, Any]) -> ModelSpec:
        """A model by name, or from its document."""
        if isinstance(part, str):
            # Built-in names cannot be stored, so they need no query.
            stored = None if part.lower() in builtin_models() else self.store.named("model", part)
            model = catalogue_model(part) if stored is None else ModelSpec.model_validate(stored[1])
        else:
            model = model_from_data(dict(part), str(part.get("name") or INLINE_NAME)[:64], "/model")
        self.check_layers(model, "/model")
        return model

    def check_layers(self, model: ModelSpec, where: str) -> None:
        """Refuse more layers than this service plans.  Raises FindingsInvalid."""
        most = self.settings.most_layers
        if model.num_layers > most:
            require([Finding("", f"{model.num_layers:,} layers; this service plans up to {most:,}", "")], where)

    def cluster(self, part: str | Mapping[str, Any], devices: int | None) -> Cluster:
        """A cluster by name or from its document, scaled."""
        if isinstance(part, str):
            stored = None if part.lower() in builtin_clusters() else self.store.named("cluster", part)
            cluster = catalogue_cluster(part) if stored is None else Cluster.model_validate(stored[1])
        else:
            cluster = read_cluster(dict(part), "/cluster")
        most = self.settings.most_devices
        if (devices or cluster.num_devices) > most:
            too_many = f"{devices or cluster.num_devices:,} devices; this service plans up to {most:,}"
            require([Finding("", too_many, "ask for fewer devices")], "/devices")
        return cluster if devices is None else scale_cluster(cluster, devices, "--devices")

    def stored(self, kind: Literal["model", "cluster"]) -> Iterator[tuple[str, ModelSpec | Cluster]]:
        """Stored models or clusters with their names."""
        for record in self.store.list_named(kind):
            yield record.name, self.model(record.name) if kind == "model" else self.cluster(record.name, None)

    def profile(self, name: str, device: Device) -> ProfileReference | None:
        """The measurements that a question leans on; None = datasheet predictions."""
        if name == "none":
            return None
        from profiles.prediction.profile_folder import find_profile, profile_of_device, reference_of

        if name == "auto":
            found = profile_of_device(device)
            return None if found is None else reference_of(found)
        stored = self.store.named("profile", name)
        if stored is not None:
            reference = ProfileReference.model_validate(stored[1])
        else:
            reference = reference_of(find_profile(name))
        if reference.device != device.name:
            wrong = f"the profile is of {reference.device}, the cluster has {device.name}"
            raise FindingsInvalid([Finding("", wrong, "name a profile of the cluster's device")], "/profile")
        return reference


def _calibration(part: str | Mapping[str, Any] | None) -> Calibration | AppliedCalibration | None:
    """The factors that a question asks for: a stored document's, or those that stand in it.

    Raises NotFound, FindingsInvalid.
    """
    if part is None:
        return None
    from planner.evidence.calibration.folder import calibrations_folder, find_calibration

    if isinstance(part, str):
        return find_calibration(part, calibrations_folder())
    if "calibration_id" in part:
        return read_document(AppliedCalibration, dict(part), "/calibration")
    return read_document(Calibration, dict(part), "/calibration")


def checked_workload(workload: Workload) -> Workload:
    """Refuse counts that no machine reaches."""
    counts = {"global_batch_size": workload.global_batch_size, "sequence_length": workload.sequence_length}
    counts["images_per_sample"] = workload.images_per_sample
    counts["audio_clips_per_sample"] = workload.audio_clips_per_sample
    require(
        [
            Finding(f"/{name}", "is out of range", f"give a whole number up to {LARGEST_COUNT}")
            for name, value in counts.items()
            if value > LARGEST_COUNT
        ],
        "/workload",
    )
    return workload


def checked_constraints(constraints: Constraints) -> Constraints:
    """Pins and forbids in the planner's own words, back-ends that there are.  Raises FindingsInvalid."""
    from planner.search.choices import checked_pins

    pins = checked_fields(constraints.pins, "/constraints/pins", PINNABLE)
    forbids = [full_name(word) for word in constraints.forbids]
    require(
        [
            Finding(f"/{index}", "cannot be forbidden", did_you_mean(name[:64], FORBIDDABLE))
            for index, name in enumerate(forbids[:100])
            if name not in FORBIDDABLE
        ],
        "/constraints/forbids",
    )
    require(_unknown_backends(constraints.backends), "/constraints/backends")
    checked = constraints.model_copy(update={"pins": pins, "forbids": tuple(sorted(set(forbids)))})
    checked_pins(checked)
    return checked


def _unknown_backends(names: tuple[str, ...]) -> list[Finding]:
    """A finding for each name of no back-end or release, with the nearest one."""
    found = list[Finding]()
    for index, name in enumerate(names):
        try:
            if name != ANY:
                software(name[:MOST_NAME])
        except NotFound as error:
            found.append(Finding(f"/{index}", error.what, error.hint or ""))
    return found


def _checked_objective(objective: Objective, constraints: Constraints) -> Objective:
    wishes = (constraints.max_step_time_s, constraints.min_tokens_per_s)
    if objective.minimize == "devices" and wishes == (None, None):
        hint = "add max_step_time_s or min_tokens_per_s to the constraints"
        raise FindingsInvalid([Finding("/minimize", "the fewest devices for which speed?", hint)], "/objective")
    return objective


@lru_cache(maxsize=128)
def catalogue_model(name: str) -> ModelSpec:
    """A built-in model.  Raises NotFound with the nearest name."""
    if name.lower() not in builtin_models():
        hint = did_you_mean(name, builtin_models())
        raise NotFound(f"there is no model {name!r}", where="--model", hint=hint)
    return builtin_model(name)


@lru_cache(maxsize=128)
def catalogue_cluster(name: str) -> Cluster:
    """A built-in cluster.  Raises NotFound with the nearest name."""
    if name.lower() not in builtin_clusters():
        hint = did_you_mean(name, builtin_clusters())
        raise NotFound(f"there is no cluster {name!r}", where="--cluster", hint=hint)
    return load_cluster(name.lower())
