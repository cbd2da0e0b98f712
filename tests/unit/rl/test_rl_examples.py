"""The questions of ``examples/rl`` and the commands about them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from planner.operations.rl import RlRequest, asked_rl
from profiles.validation import read_document
from tests.command_line import run_here

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "rl").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_question(path: Path) -> None:
    asked = read_document(RlRequest, yaml.safe_load(path.read_text("utf-8")), str(path))
    problem = asked_rl(asked)
    assert problem.cluster.num_devices == asked.devices
    assert problem.num_samples % problem.mini_batches == 0


@pytest.mark.budget(20)
def test_a_plan_and_the_estimate_of_its_deployment_are_one_number() -> None:
    """A second way through the product: what the search gives, asked for as a deployment, takes as long."""
    question = next(path for path in EXAMPLES if path.stem.startswith("grpo"))
    plan = run_here("rl", "plan", str(question), "-o", "json", "-q").json()
    best = plan["best"]["deployment"]
    assert best["placement"] == "colocated"
    tp = str(best["rollout"]["layout"]["tp"])
    words = ["rl", "estimate", str(question), "--placement", "colocated", "--rollout-tp", tp, "-o", "json"]
    estimate = run_here(*words).json()
    assert estimate["prediction"]["step_s"] == pytest.approx(plan["best"]["prediction"]["step_s"])
    assert plan["lower_bound_s"] <= plan["best"]["prediction"]["step_s"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-m", "qwen3-8b"], 2, "no cluster is said"),
        (["-m", "qwen3-8b", "-c", "dgx-h100", "--prompts", "8"], 2, "response_tokens"),
        (["-m", "no-such", "-c", "dgx-h100"], 2, "problems"),
        (
            [
                "-m",
                "no-such",
                "-c",
                "dgx-h100",
                "--prompts",
                "8",
                "--prompt-tokens",
                "9",
                "--response-tokens",
                "mean=9",
            ],
            3,
            "no-such",
        ),
        (["-m", "qwen3-8b", "-c", "dgx-h100", "--response-tokens", "median=9"], 2, "neither mean nor a percentile"),
    ],
)
def test_bad_input_gets_one_clear_error(words: list[str], code: int, said: str) -> None:
    ran = run_here("rl", "plan", *words)
    assert ran.exit_code == code
    assert said in ran.stderr
    assert not ran.stdout
