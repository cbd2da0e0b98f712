"""``--optimizer-states``: number formats of moments and master weights."""

from __future__ import annotations

from planner.cli.key_values import key_values
from planner.errors import DocumentInvalid

FLAG = "--optimizer-states"
NAMES = ("first", "second", "master")
SAID = "NAME=FORMAT of first, second (fp32, fp16, bf16, fp8) and master (fp32, fp16), for example first=fp8,second=fp16"


def states_of(text: str | None) -> dict[str, str] | None:
    """The document of ``planner.question.optimizer_states.OptimizerStates`` that ``text`` means; None where not said.

    Raises DocumentInvalid for what has not this form; formats are checked with the workload.
    """
    if text is None:
        return None
    said = key_values(text.split(","), FLAG, f"give {SAID}")
    if strange := next((name for name in said if name not in NAMES), None):
        raise DocumentInvalid(f"{strange!r} is no state of an optimizer", where=FLAG, hint=f"give {SAID}")
    return said
