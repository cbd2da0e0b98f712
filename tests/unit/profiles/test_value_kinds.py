"""Values of another kind than their field are findings, in files and in requests."""

from __future__ import annotations

import pytest
from pydantic import Field

from planner.question.problem import Workload
from profiles.document import Document
from profiles.validation import FindingsInvalid, read_document
from profiles.value_kinds import value_kinds


class Inner(Document):
    count: int
    rate: float = 1.0


class Outer(Document):
    parts: tuple[Inner, ...] = ()
    named: dict[str, Inner] = Field(default_factory=dict)
    on: bool = False
    either: int | str | bool = 0
    note: str | None = None


@pytest.mark.parametrize(
    ("data", "pointers"),
    [
        ({"parts": [{"count": 1, "rate": 2}], "on": True, "either": "7", "note": "8"}, []),
        ({"parts": [{"count": 1.0}]}, []),
        ({"either": True}, []),
        ({"parts": [{"count": 1}, {"count": True}]}, ["/parts/1/count"]),
        ({"parts": [{"count": "1", "rate": " 2e3 "}]}, ["/parts/0/count", "/parts/0/rate"]),
        ({"named": {"a/b": {"count": "1"}}}, ["/named/a~1b/count"]),
        ({"on": 1}, ["/on"]),
        ({"on": "yes"}, ["/on"]),
    ],
)
def test_kinds(data: dict[str, object], pointers: list[str]) -> None:
    found = list(value_kinds(data, Outer.model_validate(data), quoted=True))
    assert [each.pointer for each in found] == pointers
    assert all(each.what and each.hint for each in found)


def test_a_file_may_quote_a_number_but_not_say_true_for_one() -> None:
    assert read_document(Workload, {"global_batch_size": "64", "sequence_length": 8}, "q").global_batch_size == 64
    with pytest.raises(FindingsInvalid, match="must be a number, not true") as caught:
        read_document(Workload, {"global_batch_size": True, "sequence_length": 8}, "q.yaml")
    assert caught.value.where == "q.yaml#/global_batch_size"
