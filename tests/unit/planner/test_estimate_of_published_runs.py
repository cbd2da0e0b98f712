"""Published runs can be asked about exactly as they were run: what is given is held, full recompute is of all layers.

What is compared with the measured step are ratios within a factor of two: an estimate in seconds instead of minutes, or
of a third of the layers, would be far outside; how good the predictions are is told by ``meshwright accuracy``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.plan.plan import Plan
from planner.plan.relief import relieves_every_layer
from planner.search.estimate import estimate
from planner.strategy.relief_layers import relief_layers
from planner.strategy.text import complete_strategy, parse_assignments
from tests.command_line import run_here
from tests.published_runs import FULL, OTHERS, Run, problem_of_run


def _estimated(run: Run, folder: Path) -> tuple[Plan, dict[str, Any]]:
    values = parse_assignments([run.strategy], "--strategy")
    strategy, _ = complete_strategy(values, run.devices, run.batch)
    return estimate(problem_of_run(run, folder), strategy, None, values, relief_layers(values)), values


def _held(plan: Plan, values: dict[str, Any]) -> None:
    """Every given field is in the plan, and said to be given."""
    assert plan.origins is not None
    for name, value in values.items():
        has = plan.strategy[name]
        assert ("+".join(has) if isinstance(has, list) else has) == value
        assert plan.origins.given[name] == value
    if "pp" in values:
        assert len(plan.stages) == values["pp"]


@pytest.mark.parametrize("name", FULL)
def test_a_published_run_with_full_recompute_is_stated_exactly(name: str, tmp_path: Path) -> None:
    run = FULL[name]
    plan, values = _estimated(run, tmp_path)
    _held(plan, values)
    assert plan.status == "feasible"
    assert relieves_every_layer(plan)
    # A third of the backward and forward work is the replay.
    assert 0.2 < plan.breakdown_s["recompute"] / plan.breakdown_s["compute"] < 0.4
    assert run.measured_s is not None
    assert 0.5 < plan.step_time_s / run.measured_s < 2.0


@pytest.mark.parametrize("name", OTHERS)
def test_a_published_run_without_full_recompute_is_stated_exactly(name: str, tmp_path: Path) -> None:
    run = OTHERS[name]
    plan, values = _estimated(run, tmp_path)
    _held(plan, values)
    if run.measured_s is not None:
        assert 0.5 < plan.step_time_s / run.measured_s < 2.0


@pytest.mark.parametrize("name", ["llama-3-405b", "nemotron-4-340b"])
def test_a_published_run_that_fitted_is_judged_to_fit(name: str, tmp_path: Path) -> None:
    plan, _ = _estimated(OTHERS[name], tmp_path)
    # The default asks for 0.95: the 405B run is known to have fitted, and has 0.92 by the margin of a further source.
    assert plan.fits_probability is not None
    assert plan.fits_probability > 0.9


def test_the_command_says_what_it_held() -> None:
    run = FULL["mt-nlg-530b-280"]
    words = ("estimate", "--model", run.model, "--cluster", run.cluster, "--devices", str(run.devices))
    asked = (*words, "--global-batch-size", str(run.batch), "--sequence-length", str(run.sequence))
    ran = run_here(*asked, "--backend", run.backend, "--strategy", run.strategy, "--output", "json")
    assert ran.exit_code == 0, ran.stderr
    plan = ran.json()
    assert plan["origins"]["given"] == {
        "tp": 8, "pp": 35, "dp": 8, "recompute": "full", "relieved_layers": ",".join(["3"] * 35)
    }  # fmt: skip
    assert plan["origins"]["chosen"] == {"layers": ",".join(["3"] * 35)}
    assert {stage["recompute"]["num_layers_per_chunk"][0] for stage in plan["stages"]} == {3}
    table = run_here(*asked, "--backend", run.backend, "--strategy", run.strategy).stdout
    assert "Held and filled in" in table
    assert "recompute=full" in table
