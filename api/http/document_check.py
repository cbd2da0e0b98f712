"""The check of plain data against a kind of document: findings with JSON pointers, none with what was sent.

What a client sends may hold secrets, and is none of the answer's business; so messages name places and rules only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from profiles.validation import Finding, FindingsInvalid, pointer_to, require
from profiles.value_kinds import value_kinds

M = TypeVar("M", bound=BaseModel)
MOST_FINDINGS = 50

WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no key of this document",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be an array",
    "list_type": "must be an array",
}


def checked_document(kind: type[M], data: Any) -> M:
    """The document.  Raises FindingsInvalid with every finding."""
    try:
        made = kind.model_validate(data)
    except ValidationError as error:
        raise findings_error(error.errors(include_url=False, include_input=False, include_context=False)) from None
    require(list(value_kinds(data, made, quoted=True))[:MOST_FINDINGS], "body")
    return made


def findings_error(errors: Sequence[ErrorDetails], prefix: str = "") -> FindingsInvalid:
    """One error with a finding for each of Pydantic's."""
    found = [_finding(detail, prefix) for detail in errors[:MOST_FINDINGS]]
    return FindingsInvalid(list(dict.fromkeys(found)), "body")


def _finding(detail: ErrorDetails, prefix: str) -> Finding:
    # Pydantic names the branch of a union (a function's or a model's name) as if it were a key.
    path = [part for part in detail["loc"] if not (isinstance(part, str) and _is_branch(part))]
    message = WORDS.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    message = message.replace("Input should be", "must be")
    key = str(path[-1]) if path else ""
    hint = {"missing": f"add {key}", "extra_forbidden": f"remove {key}"}.get(detail["type"], "")
    return Finding(prefix + pointer_to(*path), message, hint)


def _is_branch(part: str) -> bool:
    return part in {"str", "int", "bool", "float", "constrained-str"} or "[" in part or part[:1].isupper()
