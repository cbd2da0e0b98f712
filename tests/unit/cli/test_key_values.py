"""``NAME=VALUE`` words: one reader for every flag that takes them."""

from __future__ import annotations

import pytest

from planner.cli.key_values import key_values
from planner.cli.problem_inputs import _said_reliability
from planner.cli.sequences_flag import sequences_of
from planner.cli.states_flag import states_of
from planner.errors import DocumentInvalid


def test_words_are_read_in_their_order() -> None:
    said = key_values(["b-c = x=y ", "dora", "a=1", "a=1"], "--flag", "hint", switches=("dora",), dashes=True)
    assert list(said.items()) == [("b_c", "x=y"), ("dora", "true"), ("a", "1")]


@pytest.mark.parametrize(
    ("words", "what"),
    [(["a"], "'a' is not NAME=VALUE"), (["=1"], "'=1' is not NAME=VALUE"), (["a=1", "a=2"], "a is given twice")],
)
def test_other_words_are_refused(words: list[str], what: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        key_values(words, "--flag", "what to do")
    assert (refused.value.what, refused.value.where, refused.value.hint) == (what, "--flag", "what to do")


def test_no_flag_takes_the_last_of_two_values_in_silence() -> None:
    with pytest.raises(DocumentInvalid, match="first is given twice"):
        states_of("first=fp8,first=fp16")
    with pytest.raises(DocumentInvalid, match="repair_hours is given twice"):
        _said_reliability("repair_hours=1,repair_hours=2")
    with pytest.raises(DocumentInvalid, match="mean is given twice"):
        sequences_of("packed,mean=640,mean=320")
