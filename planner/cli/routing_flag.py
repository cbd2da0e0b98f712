"""``--routing``: how tokens spread over the routed experts, from a word or from a file of a training log's counts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from planner.cli.key_values import file_text
from planner.errors import DocumentInvalid

FLAG = "--routing"
SAID = "even, zipf:EXPONENT, or a file with the tokens of each expert (numbers, or a JSON list)"
_BETWEEN = re.compile(r"[\s,;]+")


def routing_of(text: str | None) -> dict[str, Any] | None:
    """The document of ``planner.question.routing.ExpertLoad`` that ``text`` means; None where nothing is said.

    Raises DocumentInvalid for another word, a file that cannot be read, or one that holds something else than numbers.
    """
    if text is None:
        return None
    if text == "even":
        return {"kind": "even"}
    if text.startswith("zipf:"):
        return {"kind": "zipf", "exponent": _number(text.removeprefix("zipf:"), text)}
    path = Path(text)
    if "/" not in text and not path.suffix and not path.exists():
        raise DocumentInvalid(f"no routing is called {text}", where=FLAG, hint=f"give {SAID}")
    return {"kind": "histogram", "tokens": _counts(path)}


def _counts(path: Path) -> list[float]:
    text = file_text(path, FLAG, f"give {SAID}")
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(each, int | float) for each in found):
            raise DocumentInvalid("the JSON is no list of numbers", where=f"{FLAG} {path}", hint=f"give {SAID}")
        words = [str(each) for each in found]
    else:
        words = [word for word in _BETWEEN.split(text) if word]
    if not words:
        raise DocumentInvalid("the file holds no number", where=f"{FLAG} {path}", hint=f"give {SAID}")
    return [_number(word, f"{path}") for word in words]


def _number(word: str, where: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DocumentInvalid(f"{word[:40]!r} is no number", where=f"{FLAG} {where}", hint=f"give {SAID}")
    return found
