from __future__ import annotations

import pytest

from planner.answers.views.words import digits, gib, money
from planner.errors import DocumentInvalid
from planner.predict.step_terms import term_words
from planner.question.problem import Constraints
from planner.search.choices import checked_pins
from planner.strategy.fields import ALIASES, FORBIDDABLE, PINNABLE, told_fields
from planner.strategy.text import parse_forbids


def test_sizes_change_unit_where_gib_gets_long() -> None:
    assert gib(71.25 * 2**30) == "71.2 GiB"
    assert gib(2**40) == "1.0 TiB"
    assert gib(-3 * 2**40) == "-3.0 TiB"


def test_small_amounts_keep_their_digits() -> None:
    assert (money(0.0051667), money(1234.5), digits(6.2), digits(1015.2)) == ("0.00517", "1,234.50", "6.20", "1,015")


def test_terms_have_words() -> None:
    assert term_words("pp_bubble") == "pipeline bubble"
    assert term_words("new_term") == "new term"


def test_derived_fields_are_told_only_alone() -> None:
    assert told_fields(("tp", "dp", "num_microbatches")) == ("tp",)
    assert told_fields(("num_microbatches",)) == ("num_microbatches",)


def test_every_alias_names_a_field() -> None:
    assert set(ALIASES.values()) <= set(PINNABLE)


@pytest.mark.parametrize("name", [*sorted({*PINNABLE} - {*FORBIDDABLE}), "fsdp", "mbs", "gradient_accumulation_steps"])
def test_a_count_cannot_be_forbidden(name: str) -> None:
    with pytest.raises(DocumentInvalid, match="neither an axis nor a switch") as caught:
        parse_forbids([name], "--forbid")
    assert f"--pin {name}=" in str(caught.value.hint)
    with pytest.raises(DocumentInvalid, match="neither an axis nor a switch"):
        checked_pins(Constraints(forbids=(name,)))


def test_the_search_takes_the_words_of_the_command_line() -> None:
    assert checked_pins(Constraints(pins={"vp": 2}, forbids=("hsdp",))) == {"vpp": 2, "dp_replicate": 1}
