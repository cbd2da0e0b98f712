"""The JSON body of a question: from ``api.wire.questions``, a whole ``Problem``, or plain data.

Plain data is not looked at here: the service finds every fault and names each with a JSON pointer.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from planner.errors import DocumentInvalid, NotFound
from planner.question.problem import Problem
from profiles.document import Document

Asked = Problem | Document | Mapping[str, Any]
"""What the methods of a client take as a question."""


def body_of(asked: Asked) -> dict[str, Any]:
    """Plain JSON data.  Raises DocumentInvalid for what JSON or the service has no place for."""
    if isinstance(asked, Problem):
        return _problem_body(asked)
    if isinstance(asked, Document):
        return asked.model_dump(mode="json")
    try:
        data: dict[str, Any] = json.loads(json.dumps(dict(asked), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DocumentInvalid(
            f"the question is no JSON: {error}", where="body", hint="use numbers, text, lists and mappings only"
        ) from None
    return data


def new_key() -> str:
    """An ``Idempotency-Key`` that nobody else has: one call, however often it is sent."""
    return f"client-{uuid.uuid4().hex}"


def path_part(text: str, what: str) -> str:
    """``text`` as one part of a path.  Raises NotFound for what the service cannot have."""
    plain = text.isascii() and all(each.isalnum() or each in "._:-" for each in text)
    if not plain or not text[:1].isalnum() or len(text) > 128:
        raise NotFound(f"there is no such {what}", where=text[:80], hint="names have letters, digits, '.', '_' and '-'")
    return text


def _problem_body(problem: Problem) -> dict[str, Any]:
    """A whole problem as a question: every part in full, so that no name is looked up."""
    document = problem.model_dump(mode="json")
    return {
        "model": document["model"],
        "cluster": document["cluster"],
        "workload": document["workload"],
        "constraints": document["constraints"],
        # A document leaves out that the fastest is preferred; a question that says nothing prefers the recommended one.
        "objective": {**document["objective"], "prefer": problem.objective.prefer},
        "profile": "none" if problem.profile is None else problem.profile.profile_id,
        # Absent where there is none: older services know no such part.
        **({"calibration": document["calibration"]} if "calibration" in document else {}),
    }
