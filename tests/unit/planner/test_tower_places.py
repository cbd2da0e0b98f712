"""Where a tower may stand, what its layouts cost, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.asked import problem_hardware
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.parameters import tower_parameters
from planner.model.spec import ModelSpec
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.towers.assemble import towers_plan
from planner.search.towers.compose import between_devices_s, on_own_devices, within_devices_s
from planner.search.towers.find import find_places
from planner.search.towers.problem import (
    checked_towers_problem,
    first_stage_problem,
    language_problem,
    without_towers,
)
from planner.search.towers.tower_cost import TowerBill, TowerLayout, sample_bytes, tower_bills, tower_layouts
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.scaling import scale_cluster
from tests.oracle.test_tower_search import AUDIO, VISION
from tests.plan_factory import make_cluster, make_model

PINS: dict[str, Any] = {"tp": 1, "sp": False, "recompute": "none"}


def _model(**changes: Any) -> ModelSpec:
    return make_model().model_copy(update={"vision": VISION, **changes})


def _problem(
    model: ModelSpec | None = None,
    *,
    devices: int = 8,
    batch: int = 8,
    pins: dict[str, Any] | None = None,
    training: Any = None,
    **work: Any,
) -> Problem:
    data = {"global_batch_size": batch, "sequence_length": 1024, "images_per_sample": 2, "training": training, **work}
    return Problem(
        model=model or _model(),
        cluster=scale_cluster(make_cluster(), devices),
        workload=Workload.model_validate(data),
        constraints=Constraints(pins=PINS if pins is None else pins),
    )


def _bills(problem: Problem, layouts: list[TowerLayout]) -> list[TowerBill]:
    asked, tower = checked_towers_problem(problem)
    return tower_bills(asked.model, tower, asked.workload, problem_hardware(asked), layouts)


def test_a_grid_splits_heads_samples_and_devices() -> None:
    found = tower_layouts(VISION, 8, 4)
    # Twelve heads: no tp of 8; eight replicas have no sample each.
    assert [(each.tp, each.dp, each.samples_per_rank) for each in found] == [(2, 4, 1), (4, 2, 2)]
    assert tower_layouts(VISION, 5, 4) == []


def test_tensor_parallelism_splits_states_and_work() -> None:
    problem, (one, two) = _problem(), [TowerLayout(tp, 4, 4) for tp in (1, 2)]
    whole, split = _bills(problem, [one, two])
    assert whole.parameters == tower_parameters(VISION)
    # Front end and projector are whole on every rank.
    layers = tower_parameters(VISION) - VISION.extra_parameters
    assert split.parameters == pytest.approx(layers / 2 + VISION.extra_parameters, rel=0.001)
    assert split.backward_s < whole.backward_s
    assert split.kept_bytes < whole.kept_bytes
    assert whole.framework_bytes == pytest.approx(FRAMEWORK_BYTES + 2 * COMMUNICATOR_BYTES)
    assert whole.optimizer_bytes == pytest.approx(12 * whole.parameters / 4)
    tokens = 2 * VISION.tokens_per_image
    assert (
        whole.entry_bytes
        == 2 * tokens * problem.model.hidden_size
        == sample_bytes(problem.model, VISION, problem.workload)
    )


def test_twice_the_samples_take_twice_the_activations_and_more_time() -> None:
    small, large = _bills(_problem(), [TowerLayout(1, 4, 4), TowerLayout(1, 4, 8)])
    assert large.kept_bytes == pytest.approx(2 * small.kept_bytes)
    assert 1.5 * small.forward_s < large.forward_s < 2.01 * small.forward_s
    assert large.total_bytes(3) - large.total_bytes(2) == pytest.approx(large.kept_bytes)


def test_a_frozen_tower_runs_forward_alone() -> None:
    frozen = _problem(training={"kind": "full", "frozen_towers": "all"})
    (learns,), (frozen_bill,) = _bills(_problem(), [TowerLayout(1, 4, 4)]), _bills(frozen, [TowerLayout(1, 4, 4)])
    assert frozen_bill.backward_s == frozen_bill.late_s == frozen_bill.parameters == frozen_bill.kept_bytes == 0
    assert frozen_bill.forward_s == pytest.approx(learns.forward_s)
    assert frozen_bill.weights_bytes == pytest.approx(2 * tower_parameters(VISION))


def test_on_the_same_grid_it_costs_what_it_costs_on_the_first_stage() -> None:
    """With one layout for both, the two roads agree: the passes, and the memory but for what is handed over."""
    found = find_places(_problem(devices=2, pins={**PINS, "pp": 1, "num_microbatches": 1}))
    assert found.first_stage is not None
    assert found.same_devices is not None
    (whole,), (language,), tower = (
        found.first_stage.stages,
        found.same_devices.language.stages,
        found.same_devices.tower,
    )
    assert tower.layout.dp == found.first_stage.strategy["dp"] == 2
    assert language.forward_s + tower.forward_s == pytest.approx(whole.forward_s)
    assert language.backward_s + tower.backward_s == pytest.approx(whole.backward_s)
    handed = 6 * tower.entry_bytes
    assert found.same_devices.peak_bytes - found.first_stage.peak_memory_bytes == pytest.approx(handed, abs=1e6)


def test_sequence_parallelism_is_the_language_models_alone() -> None:
    """On the first stage as in a grid of its own: the tower's part of the time is the same with and without."""
    asked, tower = checked_towers_problem(_problem())
    hardware = problem_hardware(asked)

    def tower_s(*, sp: bool) -> float:
        rows = StrategyRows.of([Strategy(tp=2, dp_shard=4, sp=sp, overlap_tp=sp)], [Relief()])
        models = asked.model, without_towers(asked.model)
        with_it, without = (CostModel(each, asked.workload, hardware, [Relief()]).rows(rows) for each in models)
        return float(with_it.embedding_backward_s[0] - without.embedding_backward_s[0])

    (bill,) = tower_bills(asked.model, tower, asked.workload, hardware, [TowerLayout(2, 4, 4)])
    assert tower_s(sp=True) == pytest.approx(bill.backward_s, rel=1e-6)
    assert tower_s(sp=False) == pytest.approx(bill.backward_s, rel=1e-6)


def test_devices_of_its_own_put_the_tower_before_the_pipeline() -> None:
    problem = _problem(devices=4, pins={**PINS, "pp": 2, "num_microbatches": 8})
    here = find_places(problem, tower_devices=2).own_devices
    assert here is not None
    assert here.in_flight == 3
    assert here.language.problem.cluster.num_devices == 2
    # The pipeline waits for the first forward of the tower and is waited for by its last backward.
    assert here.step_s >= here.language.step_time_s + here.tower.microbatch_s
    assert here.step_s >= 8 * here.tower.microbatch_s
    alone_s = here.language.step_time_s + 8 * (here.tower.microbatch_s + 2 * here.bridge_s) + here.tower.late_s
    assert here.step_s < alone_s
    hardware = problem_hardware(checked_towers_problem(problem)[0])
    free = on_own_devices(here.language, _slower(here.tower, 0), hardware, 0.0)
    assert free.step_s == pytest.approx(here.language.step_time_s, rel=0.05)


def _slower(bill: TowerBill, times: int) -> TowerBill:
    values = {name: getattr(bill, name) for name in TowerBill.__slots__}
    return TowerBill(**{**values, "forward_s": times * bill.forward_s, "backward_s": times * bill.backward_s})


def test_nothing_crosses_between_equal_replicas_of_the_same_devices() -> None:
    hardware = problem_hardware(checked_towers_problem(_problem())[0])
    language = Strategy(tp=2, dp_shard=4).to_dict()
    assert within_devices_s(TowerLayout(2, 4, 8), language, hardware, 1e6) == 0
    assert within_devices_s(TowerLayout(1, 8, 8), language, hardware, 1e6) > 0
    assert within_devices_s(TowerLayout(4, 2, 8), language, hardware, 1e6) > 0
    few, many = (between_devices_s(TowerLayout(1, dp, 8), language, hardware, 1e8) for dp in (1, 4))
    assert few > many > 0


def test_the_answer_tells_every_place_and_its_bound() -> None:
    plan = towers_plan(_problem(devices=2))
    assert [place.step_time_s for place in plan.places] == sorted(place.step_time_s for place in plan.places)
    assert {place.place for place in plan.places} | set(plan.refused) == {"first_stage", "same_devices", "own_devices"}
    assert plan.lower_bound_s <= plan.best.step_time_s
    assert 0 <= plan.gap < 0.05
    for place in plan.places:
        assert place.peak_memory_bytes <= plan.memory_limit_bytes
        assert place.tower is None or place.tower.peak_memory_bytes.total > 0
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


def test_a_tower_that_hears_is_planned_alike() -> None:
    plan = towers_plan(
        _problem(
            _model(vision=None, further_towers=(AUDIO,)),
            devices=2,
            batch=2,
            images_per_sample=0,
            audio_clips_per_sample=1,
        )
    )
    assert plan.modality == "audio"


def test_no_bound_is_above_any_composition() -> None:
    """Every language plan with every grid of the tower, without any pruning."""
    problem = _problem(devices=2, batch=4)
    found = find_places(problem)
    asked = found.asked
    steps: list[float] = []
    for microbatches in asked.microbatches:
        steps += _compositions(problem, microbatches)
    assert found.lower_bound_s <= min(steps) * (1 + 1e-9)
    best = found.own_devices
    assert best is not None
    assert best.step_s <= min(steps) * (1 + 1e-9)


def _compositions(problem: Problem, microbatches: int) -> list[float]:
    """One device for each of the two."""
    asked, tower = checked_towers_problem(problem)
    cluster = scale_cluster(asked.cluster, 1)
    plan = find_plan(language_problem(asked, cluster, {"num_microbatches": microbatches}), SearchOptions(top_k=0))
    own = problem_hardware(asked.model_copy(update={"cluster": cluster}))
    samples = asked.workload.global_batch_size // microbatches
    bills = tower_bills(asked.model, tower, asked.workload, own, tower_layouts(tower, 1, samples))
    each_bytes = sample_bytes(asked.model, tower, asked.workload)
    return [on_own_devices(plan, bill, problem_hardware(asked), each_bytes).step_s for bill in bills]


def test_the_language_model_is_asked_about_alone() -> None:
    problem = _problem(training={"kind": "full", "frozen_towers": "all"})
    asked, _ = checked_towers_problem(problem)
    alone = language_problem(asked, asked.cluster, {"pp": 1})
    assert alone.model.towers == ()
    assert alone.workload.images_per_sample == 0
    assert alone.workload.training is not None
    assert alone.workload.training.frozen_towers == ()
    assert alone.constraints.pins["pp"] == alone.constraints.pins["cp"] == 1
    assert first_stage_problem(asked).model.towers == (VISION,)


def test_samples_may_have_unequal_numbers() -> None:
    counted = _problem(devices=2, batch=4, images_per_sample=0, image_counts="0:1+4:1")
    asked, _ = checked_towers_problem(counted)
    assert not language_problem(asked, asked.cluster, {}).workload.counted
    plan, even = towers_plan(counted, tower_devices=1), towers_plan(_problem(devices=2, batch=4), tower_devices=1)
    assert any("deviation 2" in each for each in plan.assumptions)
    assert plan.best.step_time_s > even.best.step_time_s


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (_problem(make_model(), images_per_sample=0), "has no tower"),
        (_problem(_model(further_towers=(AUDIO,))), "one tower"),
        (_problem(images_per_sample=0), "have no images"),
        (_problem(pins={"cp": 2}), "cannot keep cp=2"),
        (_problem().model_copy(update={"objective": Objective(minimize="cost")}), "by their step time"),
    ],
)
def test_what_cannot_be_is_said(problem: Problem, said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said):
        checked_towers_problem(problem)


def test_a_back_end_has_no_such_layouts() -> None:
    problem = _problem().model_copy(update={"constraints": Constraints(backends=("megatron",))})
    with pytest.raises(BackEndRefused, match="MegatronMIMO"):
        checked_towers_problem(problem)


def test_a_number_that_parts_no_cluster_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="cannot be parted"):
        find_places(_problem(devices=4), tower_devices=4)
