"""The question of where a tower stands, and the questions about the language model alone that it leads to."""

from __future__ import annotations

from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.mixers.kinds import FED
from planner.model.spec import ModelSpec, Tower, VisionSpec
from planner.question.problem import ANY, UNRESTRICTED, Objective, Problem
from planner.question.work_kind import COUNTS, ITEMS
from planner.search.choices import checked_pins
from planner.strategy.fields import OF_RELIEF, full_name
from profiles.cluster import Cluster

FIXED: dict[str, int | str | bool] = {
    "cp": 1,
    "vpp": 1,
    "schedule": "1f1b",
    "zero_stage": 1,
    "dp_replicate": 1,
    "optimizer_offload": False,
    "activation_offload": False,
    "axis_order": "tp-cp-ep-dp-pp",
}
"""What the language model's strategy keeps, because MegatronMIMO runs nothing else beside a tower with a layout of its
own (NVIDIA/Megatron-LM d98e8a64: examples/mimo/training/args.py:73 cp; examples/mimo/training/runtime.py:90 the
distributed optimizer; megatron/core/pipeline_parallel/schedules.py:2190 the schedule without interleaving)."""


def checked_towers_problem(problem: Problem) -> tuple[Problem, Tower]:
    """The question with the software whose physics hold, and the one tower that it is about.

    Raises DocumentInvalid for a model without one, samples without items, pins that no such layout keeps, and an
    objective other than the step time; BackEndRefused for a back-end that is named.
    """
    model, workload, constraints = problem.model, problem.workload, problem.constraints
    if not model.towers:
        raise DocumentInvalid(f"{model.name} has no tower", where="--model", hint="plan it with `meshwright plan`")
    if len(model.towers) > 1:
        names = " and ".join(tower.called for tower in model.towers)
        raise DocumentInvalid(
            f"{model.name} has {names}; layouts of their own are planned for one tower, because the one runtime that"
            " has them takes a single encoder grid (Megatron-LM examples/mimo/training/args.py:18)",
            where="--model",
            hint="plan it with `meshwright plan`, where all towers stand on the first stage",
        )
    (tower,) = model.towers
    if model.crossed_modality is not None:
        raise DocumentInvalid(
            f"layers of {model.name} attend to its tower, so it cannot stand on other devices",
            where="--model",
            hint="plan it with `meshwright plan`",
        )
    if not workload.items_per_sample(tower.modality):
        field = ITEMS[tower.modality]
        raise DocumentInvalid(
            f"the samples have no {FED[tower.modality]}, so the tower has no work",
            where=f"/workload/{field}",
            hint="say how many: --images N" if tower.modality == "vision" else "say how many: --audio-clips N",
        )
    if problem.objective.minimize != "step_time":
        raise DocumentInvalid(
            "places of a tower are compared by their step time", where="--objective", hint="leave it out"
        )
    if constraints.backends not in ((ANY,), (UNRESTRICTED,)):
        raise BackEndRefused(
            f"{', '.join(constraints.backends)} cannot give a tower a layout of its own; of the software known here"
            " MegatronMIMO can (Megatron-LM examples/mimo), which takes models as Python code and for which no files"
            " are written",
            where="--backend",
            hint="leave --backend out: the plan is for study",
        )
    pins = checked_pins(constraints)
    wrong = [f"{name}={pins[name]}" for name, value in FIXED.items() if pins.get(name, value) != value]
    if wrong:
        raise DocumentInvalid(
            f"beside a tower with a layout of its own the language model cannot keep {', '.join(wrong)}",
            where="--pin",
            hint="drop the pin, or plan with `meshwright plan`",
        )
    constraints = constraints.model_copy(update={"backends": (UNRESTRICTED,)})
    return problem.model_copy(update={"constraints": constraints, "objective": Objective()}), tower


def without_towers(model: ModelSpec) -> ModelSpec:
    """The language model alone."""
    return model.model_copy(update={"vision": None, "further_towers": ()})


def with_tower_alone(model: ModelSpec, tower: Tower) -> ModelSpec:
    """The model with this one of its towers."""
    if isinstance(tower, VisionSpec):
        return model.model_copy(update={"vision": tower, "further_towers": ()})
    return model.model_copy(update={"vision": None, "further_towers": (tower,)})


def language_problem(
    problem: Problem, cluster: Cluster, pins: dict[str, int | str | bool], margin: float | None = None
) -> Problem:
    """The question about the language model alone on some devices.

    ``margin``: part of a device's memory that is kept free, for a tower on the same devices; None = as asked.
    """
    training = problem.workload.training
    if training is not None and training.frozen_towers:
        training = training.model_copy(update={"frozen_towers": ()})
    without: dict[str, int | None] = {**dict.fromkeys(ITEMS.values(), 0), **dict.fromkeys(COUNTS.values())}
    alone = {
        "model": without_towers(problem.model),
        "cluster": cluster,
        "workload": problem.workload.model_copy(update={**without, "training": training}),
    }
    return _pinned(problem.model_copy(update=alone), pins, margin)


def first_stage_problem(problem: Problem) -> Problem:
    """The question with the tower on the first stage, in the language model's layout."""
    return _pinned(problem, {}, None)


def _pinned(problem: Problem, pins: dict[str, int | str | bool], margin: float | None) -> Problem:
    constraints = problem.constraints
    said = {**checked_pins(constraints)}
    # In the words that say which layers relieve memory.
    said |= {full_name(name): word for name, word in constraints.pins.items() if full_name(name) in OF_RELIEF}
    kept = {
        "pins": {**said, **FIXED, **pins},
        "forbids": (),
        "memory_margin_fraction": constraints.memory_margin_fraction if margin is None else margin,
        "max_step_time_s": None,
        "min_tokens_per_s": None,
    }
    return problem.model_copy(update={"constraints": constraints.model_copy(update=kept)})
