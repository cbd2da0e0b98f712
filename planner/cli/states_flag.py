"""``--optimizer-states``: number formats of moments and master weights."""

from __future__ import annotations

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
    said: dict[str, str] = {}
    for word in text.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or name not in NAMES:
            raise DocumentInvalid(f"{word.strip()!r} is no state with a format", where=FLAG, hint=f"give {SAID}")
        if name in said:
            raise DocumentInvalid(f"{name} is said twice", where=FLAG, hint=f"give {SAID}")
        said[name] = value
    return said
