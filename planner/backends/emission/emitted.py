"""Files of an emission that are read back: by name, and as documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from planner.errors import DocumentInvalid

HINT = "emit the plan again"
D = TypeVar("D", bound=BaseModel)


def file_of(files: Mapping[str, str], name: str) -> str:
    """The text of a file.  Raises DocumentInvalid where it is missing."""
    if name not in files:
        raise DocumentInvalid(f"{name} is missing", where=name, hint=HINT)
    return files[name]


def document_of(kind: type[D], text: str, name: str) -> D:
    """The JSON of a file as a document.  Raises DocumentInvalid with every finding."""
    try:
        return kind.model_validate(json.loads(text))
    except ValidationError as error:
        problems = [f"#/{'/'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise DocumentInvalid("; ".join(problems), where=name, hint=HINT) from error
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid("not JSON", where=name, hint=HINT) from error
