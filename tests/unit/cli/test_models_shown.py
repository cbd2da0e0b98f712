"""``meshwright models``: both stacks of an encoder-decoder, and positions that end nowhere."""

from __future__ import annotations

import json

import pytest

from planner.answers.summaries import model_summary
from planner.model.load import load_model
from tests.command_line import run_here


@pytest.mark.parametrize(
    ("name", "stacks", "limit"),
    [
        ("t5-11b", (48, 24), None),
        ("llama-3.1-8b", (32, 0), 131_072),
        # Attention without positions and without a bias by distance, trained up to as many tokens.
        ("kimi-linear-48b-a3b", (27, 0), 1_048_576),
        ("bloom-176b", (70, 0), 2_048),
    ],
)
def test_layers_and_longest_sequence(name: str, stacks: tuple[int, int], limit: int | None) -> None:
    facts = model_summary(name, load_model(name))
    assert (facts["num_layers"], facts["encoder_layers"]) == stacks
    assert facts["max_sequence_length"] == limit


def test_the_table_says_both() -> None:
    shown = run_here("models", "show", "t5-11b").stdout
    assert "24 + 24, 4 kinds" in shown
    assert "no limit" in shown
    assert "1,048,576" not in shown
    listed = run_here("models", "list").stdout
    assert "1048576" not in next(line for line in listed.splitlines() if "t5-11b" in line)
    assert json.loads(run_here("models", "show", "t5-11b", "-o", "json").stdout)["max_sequence_length"] is None
