"""The figures of the report against hand-made and brute-force values."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from planner.errors import DocumentInvalid
from planner.evidence.accuracy.baseline import baseline_step_s, same_source
from planner.evidence.accuracy.ranking import (
    kendall_tau,
    ranking_groups,
    ranking_key,
    ranking_score,
    read_groups,
    regret,
)
from planner.evidence.accuracy.statistics import (
    coverage,
    coverage_curve,
    error_figures,
    not_beaten,
    oom_figures,
    time_figures,
)
from planner.evidence.runs.prediction import Prediction, predict_rows
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.accuracy_rows import rows_of


def predicted(*changes: dict[str, str]) -> list[Prediction]:
    predictions, unmapped = predict_rows(rows_of(*changes))
    assert not unmapped
    return predictions


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_row_is_predicted_exactly_as_estimate_would(recompute: str) -> None:
    """The lean path shares no code with the search's splitting, only the cost of a given split."""
    (row,) = predicted({"recompute": recompute, "device": "H200-SXM-141GB", "gbs": "64"})
    (mapped_row,) = rows_of({"recompute": recompute})
    from planner.evidence.runs.flavours import flavour_of
    from planner.evidence.runs.row_model import model_of_row

    model = model_of_row(mapped_row, flavour_of(mapped_row.source, ""))
    relief = {"recompute": "full"} if recompute == "full" else {}
    strategy = Strategy(tp=2, sp=True, pp=2, dp_shard=4, num_microbatches=16, **relief)  # type: ignore[arg-type]
    problem = Problem(
        model=model,
        cluster=load_cluster("dgx-h200", 16),
        workload=Workload(global_batch_size=64, sequence_length=8192),
        constraints=Constraints(memory_margin_fraction=0.06, backends=(UNRESTRICTED,)),
    )
    plan = estimate(problem, strategy, (16, 16))
    assert row.step_time_s == pytest.approx(plan.step_time_s, rel=1e-12)
    assert row.total_memory_bytes == pytest.approx(plan.peak_memory_bytes, rel=1e-6)
    assert row.fits == (plan.status == "feasible")


def test_batching_and_order_do_not_change_a_prediction() -> None:
    changes = [{"id": f"r{tp}{mbs}", "tp": str(tp), "mbs": str(mbs)} for tp in (1, 2, 4) for mbs in (1, 2)]
    together = {each.row.id: each.step_time_s for each in predicted(*changes)}
    for change in changes:
        (alone,) = predicted(change)
        assert together[change["id"]] == alone.step_time_s
    backwards = {each.row.id: each.step_time_s for each in predicted(*reversed(changes))}
    assert backwards == together


def test_every_row_is_predicted_or_counted() -> None:
    predictions, unmapped = predict_rows(rows_of({}, {"gbs": ""}, {"precision": "nvfp4"}, {"mbs": "2"}))
    assert [each.row.id for each in predictions] == ["run-0", "run-3"]
    assert [each.row.id for each in unmapped] == ["run-1", "run-2"]
    assert all(each.reason for each in unmapped)


def test_error_figures_by_hand() -> None:
    figures = error_figures(np.array([2.0, 0.5, 1.0]), np.array([1.0, 1.0, 1.0]))
    assert figures == pytest.approx({"n": 3, "mape": 0.5, "median_ape": 0.5, "p90_ape": 0.9, "bias": 0.0})


def test_no_rows_have_no_figures() -> None:
    assert set(error_figures(np.array([]), np.array([])).values()) == {0, None}


def test_kendall_tau_against_counting_pairs() -> None:
    generator = np.random.default_rng(7)
    for _ in range(50):
        first, second = generator.integers(0, 6, (2, 9)).astype(float)
        agree = sum(np.sign(first[i] - first[j]) * np.sign(second[i] - second[j]) for i, j in combinations(range(9), 2))
        pairs = [sum(row[i] != row[j] for i, j in combinations(range(9), 2)) for row in (first, second)]
        assert kendall_tau(first, second) == pytest.approx(agree / np.sqrt(pairs[0] * pairs[1]))
    assert kendall_tau(np.ones(4), np.arange(4.0)) is None


def test_regret_by_hand() -> None:
    guess, truth = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 5.0, 2.0, 1.0])
    assert regret(guess, truth, 1) == pytest.approx(0.75)
    assert regret(guess, truth, 3) == pytest.approx(0.5)
    assert regret(guess, truth, 4) == 0.0


def test_ranking_score_ignores_groups_of_one() -> None:
    score = ranking_score(["a", "a", "a", "b"], np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 9]))
    assert (score.num_groups, score.kendall_tau, score.regret, score.good_picks) == (1, 1.0, 0.0, 1.0)
    assert ranking_score(["a"], np.ones(1), np.ones(1)).regret is None


def test_groups_file_beats_the_computed_key() -> None:
    first, second = rows_of({"tp": "1"}, {"tp": "4"})
    assert ranking_key(first, {}) == ranking_key(second, {})
    named = read_groups("\ufeffid,ranking_group\nrun-0,mine\n", "groups.csv")
    assert ranking_key(first, named) == "mine"
    with pytest.raises(DocumentInvalid, match="ranking_group"):
        read_groups("id,other\n", "groups.csv")


def test_baseline_leaves_the_row_itself_out() -> None:
    """Three equal runs, one measured ten times slower: it must not drag its own baseline along."""
    predictions = predicted({"step_time_s": "2"}, {"step_time_s": "2"}, {"step_time_s": "20"})
    guesses = baseline_step_s(predictions)
    assert guesses[2] == pytest.approx(2.0)
    assert guesses[0] == pytest.approx(1 / ((1 / 2 + 1 / 20) / 2))


def test_a_lonely_row_has_no_baseline() -> None:
    predictions = predicted({"device": "H200-SXM-141GB"}, {}, {})
    assert [guess is None for guess in baseline_step_s(predictions)] == [True, False, False]


def test_the_stricter_baseline_keeps_sources_apart() -> None:
    predictions = predicted({}, {}, {"source": "github:other/place", "step_time_s": "50"})
    assert baseline_step_s(predictions, same_source)[2] is None
    assert baseline_step_s(predictions)[2] is not None


def test_out_of_memory_matrix() -> None:
    """A 70B model on one node without sharding cannot fit; an 8B one on 16 can; the truth says all four things."""
    big = {
        "model": "llama3-70b", "params_b": "70.55", "layers": "80", "hidden": "8192", "ffn_hidden": "28672",
        "heads": "64",
        "num_devices": "8", "tp": "2", "pp": "1", "zero_or_fsdp": "ddp",
    }  # fmt: skip
    small = {"tp": "8", "pp": "2", "seq_len": "2048"}
    died = {"step_time_s": "", "notes": "OOM"}
    figures = oom_figures(predicted(big, {**big, **died}, small, {**small, **died}, small))
    assert {name: figures[name] for name in ("tp", "fp", "tn", "fn")} == {"tp": 1, "fp": 1, "tn": 2, "fn": 1}
    assert figures["balanced_accuracy"] == pytest.approx(0.5 * (1 / 2 + 2 / 3))
    assert figures["false_fits"] == pytest.approx(1 / 3)


def test_memory_figures_mean_what_the_source_means() -> None:
    """nanotron prints what the first stage keeps between steps: the micro-batch size does not matter to it."""
    nanotron = {"source": "github:x/y:huggingface_data/a.csv", "tp": "1", "pp": "1", "zero_or_fsdp": "zero0"}
    one, two = predicted({**nanotron, "mbs": "1"}, {**nanotron, "mbs": "2"})
    assert one.peak_memory_bytes == two.peak_memory_bytes
    assert one.total_memory_bytes < two.total_memory_bytes
    assert one.peak_memory_bytes < one.total_memory_bytes


def test_ranking_groups_are_what_the_score_averages() -> None:
    keys = ["a", "a", "a", "b", "b", "alone"]
    guess, truth = [1.0, 2.0, 3.0, 1.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 2.0, 1.0]
    first, second = ranking_groups(keys, guess, truth)
    assert (first.key, first.num_runs, first.kendall_tau, first.regret) == ("a", 3, 1.0, 0.0)
    assert (second.key, second.num_runs, second.kendall_tau, second.regret, second.top3_regret) == (
        "b",
        2,
        None,
        0.5,
        0,
    )
    score = ranking_score(keys, np.array(guess), np.array(truth))
    assert (score.num_groups, score.regret, score.good_picks) == (2, 0.25, 0.5)


def test_wider_intervals_hold_more_and_the_coverage_is_counted() -> None:
    (plain,) = predicted({})
    low_s, high_s = plain.interval_at(0.8)
    outside = predicted({}, {"step_time_s": repr(1.001 * high_s)}, {"step_time_s": repr(0.999 * low_s)})
    for each in outside:
        assert each.interval_at(0.9)[0] < low_s < high_s < each.interval_at(0.9)[1]
        assert each.interval_s == each.interval_at(0.9)
    assert coverage(outside[1:], 0.8) == 0.0
    assert coverage(outside[1:], 0.9) == 1.0
    assert coverage([], 0.9) is None
    holds = [each["holds"] for each in coverage_curve(outside)]
    assert holds == sorted(holds)
    figures = time_figures(outside, ["a", "b", "c"])
    assert figures["interval_coverage"] >= figures["plan_interval_coverage"]


def test_a_corrected_step_time_moves_its_interval_with_it() -> None:
    (each,) = predicted({})
    slower = replace(each, step_time_s=2 * each.step_time_s)
    assert slower.interval_s == pytest.approx([2 * end for end in each.interval_s])


def test_a_baseline_counts_as_beaten_only_in_median_and_mean() -> None:
    ours = {"n": 3, "median_ape": 0.1, "mape": 0.2}
    assert not_beaten(ours, {"n": 3, "median_ape": 0.11, "mape": 0.21}) is False
    assert not_beaten(ours, {"n": 3, "median_ape": 0.09, "mape": 0.21}) is True
    assert not_beaten(ours, {"n": 3, "median_ape": 0.11, "mape": 0.2}) is True
    assert not_beaten(ours, {"n": 0, "median_ape": None, "mape": None}) is None
