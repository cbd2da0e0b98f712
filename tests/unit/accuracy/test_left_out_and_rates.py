"""Sources left out whole, rates that stand for times, and picks of our own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.nanotron.physics import NANOTRON_STALLING
from planner.evidence.accuracy.fitted_rows import FittedRows
from planner.evidence.accuracy.left_out import NEVER_USED, WITHOUT_ITS_CONSTANTS
from planner.evidence.accuracy.optimism import UNKNOWN, low_pick_cause, optimism_data, tuned_questions, untried, views
from planner.evidence.accuracy.report import assess, report_data
from planner.evidence.accuracy.report_tables import report_tables
from planner.evidence.runs.prediction import map_rows, predict_rows, predict_runs
from planner.model.flops import model_flops_per_token
from tests.accuracy_rows import PLAIN, rows_of

RUN = {name: value for name, value in PLAIN.items() if name != "id"}
SWEEP = "github:x/huggingface_data/bench.csv"


def test_a_source_that_chose_constants_is_judged_without_them() -> None:
    sweep = {**RUN, "source": SWEEP, "notes": "after_pp_fix=False", "device": "H100-SXM-80GB"}
    rows = rows_of(sweep, {**sweep, "mbs": "2"}, {**RUN, "source": "github:new/place"})
    first = FittedRows({rows[0].id: ""})
    data = report_data(assess(rows, {}, None, first), "source")
    how = {group["group"]: (group["how"], group["n"]) for group in data["left_out"]["groups"]}
    assert how["HF Ultra-Scale (nanotron)"] == (WITHOUT_ITS_CONSTANTS, 1)
    assert how["new/place"] == (NEVER_USED, 1)
    assessment = assess(rows, {}, None, first)
    (taken,) = [each for each in assessment.without_own.values() if each.row.id == rows[1].id]
    usual = next(each for each in assessment.predictions if each.row.id == rows[1].id)
    assert usual.flavour.traits == NANOTRON_STALLING
    assert taken.flavour.traits.transfer_stall_s == 0.0 < usual.flavour.traits.transfer_stall_s
    assert taken.step_time_s < usual.step_time_s
    assert report_tables(data)[0].name == "left-out"


@pytest.mark.parametrize(
    ("notes", "factor"),
    [("MFU counts full attention", 1.0), ("TFLOPs = hardware FLOPs incl. recompute", 4 / 3)],
)
def test_a_rate_without_a_time_is_one(notes: str, factor: float) -> None:
    row = {**RUN, "step_time_s": "", "tflops_per_device": "400", "notes": notes}
    ((found,), _), (run,) = predict_rows(rows_of(row)), map_rows(rows_of(row))[0]
    flops = model_flops_per_token(run.model, 8192, causal=False) * factor
    assert found.row.measured_step_s == pytest.approx(flops * 32 * 8192 / (16 * 400e12))
    stated = replace(rows_of(row)[0], step_time_s=3.0)
    assert predict_rows([stated])[0][0].row.measured_step_s == 3.0


def test_our_pick_is_compared_with_the_best_of_the_tuned_runs() -> None:
    tuned = {**RUN, "source": "github:NVIDIA-NeMo/Megatron-Bridge:docs", "inter_node_link": "8x400G IB"}
    runs, _ = map_rows(rows_of(tuned, {**tuned, "tp": "8", "pp": "1", "step_time_s": "2.2"}))
    (question,) = tuned_questions(runs)
    assert question.runs[0].row.measured_step_s == 2.2
    predictions, _ = predict_runs(runs)
    found = optimism_data(runs, predictions)
    (told,) = found["questions"]
    assert told["num_runs"] == 2
    fastest_s = min(each.step_time_s for each in predictions if each.fits)
    assert told["optimism"] <= fastest_s / 2.2 * 1.001, "a search is no slower than the runs that it may copy"
    assert (found["n"], found["below"]) == (1, int(told["optimism"] < 0.9))
    assert bool(told["cause"]) == (told["optimism"] < 0.9)


@pytest.mark.parametrize(
    ("factors", "words", "cause"),
    [
        ((0.7, 0.7, 0.65), ["tp 2 not 8"], "cost model"),
        ((1.0, 0.7, 0.68), ["tp 2 not 8"], "software"),
        ((1.0, 1.0, 0.8), ["tp 2 not 8"], "strategy"),
        ((1.0, 1.0, 0.8), ["tp 2 not 8", "vpp 4 (not stated)"], "not stated"),
    ],
)
def test_the_least_factor_is_the_cause(factors: tuple[float, float, float], words: list[str], cause: str) -> None:
    assert low_pick_cause(*factors, words) == cause


@pytest.mark.parametrize(
    ("picked", "news"),
    [
        ({"recompute": "none", "pp": 4, "zero_stage": 1}, ["recompute none"]),
        ({"recompute": "full", "pp": 1, "zero_stage": 3}, ["zero_stage 3"]),
        ({"recompute": "full", "cp": 2, "schedule": "interleaved"}, ["cp 2"]),
    ],
)
def test_untried_is_what_no_run_of_the_source_did(picked: dict[str, object], news: list[str]) -> None:
    """Another degree of what was tried is no other code path; a field that one run leaves blank may have been any."""
    tried: dict[str, frozenset[object]] = {
        "recompute": frozenset({"full"}),
        "zero_stage": frozenset({1}),
        "schedule": frozenset({UNKNOWN, "1f1b"}),
        "pp": frozenset({1, 2}),
        "cp": frozenset({1}),
    }
    assert untried(picked, tried) == news


def test_the_views_tell_the_run_from_the_promise() -> None:
    told = {"predicted": 0.8, "as_planned": 0.8, "optimism": 0.76, "strategies": 2, "untried": ""}
    news = {"predicted": 1.0, "as_planned": 1.0, "optimism": 0.7, "strategies": 1, "untried": "cp 2"}
    found = list(views([told, news, {**told, "optimism": None}]).values())
    assert found == [[0.76, 0.7], [0.76], [0.76], [0.7], [0.8, 1.0], [pytest.approx(0.95), pytest.approx(0.7)]]


@pytest.mark.parametrize(("second", "held"), [("full", "full"), ("none", ""), ("", "")])
def test_a_question_holds_the_recompute_that_all_runs_of_its_source_state(second: str, held: str) -> None:
    tuned = {**RUN, "source": "github:some/tables:docs", "inter_node_link": "8x400G IB", "recompute": "full"}
    runs, _ = map_rows(rows_of(tuned, {**tuned, "tp": "8", "pp": "1", "step_time_s": "2.2", "recompute": second}))
    (question,) = tuned_questions(runs)
    assert question.held == held
    assert question.problem().constraints.pins == ({"recompute": "full"} if held else {})
    assert question.problem(free=True).constraints.pins == {}
    assert question.problem().objective.prefer == "recommended"


def test_runs_of_one_question_are_one_whatever_library_ran_them() -> None:
    """Both ask Megatron-LM, and the dtype of the reduction is the software's."""
    tuned = {**RUN, "source": "github:some/tables:docs", "inter_node_link": "8x400G IB"}
    sharded = {**tuned, "tp": "1", "pp": "1", "zero_or_fsdp": "fsdp", "step_time_s": "2.2"}
    runs, _ = map_rows(rows_of(tuned, sharded))
    assert len({run.workload.gradient_dtype for run in runs}) == 2, "the runs reduce in different dtypes"
    (question,) = tuned_questions(runs)
    assert question.runs[0].row.measured_step_s == 2.2
    assert len(question.runs) == 2


@pytest.mark.parametrize(("name", "family"), [("llama3-8b", "llama"), ("gpt3-175b", "custom")])
def test_a_llama_is_asked_as_one(name: str, family: str) -> None:
    """Rows state sizes and no family; back-ends that build by family would have no plan."""
    (run,), _ = map_rows(rows_of({**RUN, "source": "github:some/tables:docs", "model": name}))
    (question,) = tuned_questions([run])
    assert run.model.family == "custom"
    assert question.problem().model.family == family
