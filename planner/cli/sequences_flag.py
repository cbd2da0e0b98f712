"""``--sequences``: how long documents are, and whether they are padded or packed."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from planner.cli.key_values import file_text, key_values
from planner.errors import DocumentInvalid

FLAG = "--sequences"
SAID = (
    "padded or packed, then lengths of documents: mean=N, p50=N, p99=N, or file=FILE (a length a line, or length and"
    " count), and packing=concatenated|greedy|balanced, for example packed,mean=640,p50=400,p99=4000"
)
KINDS = ("padded", "packed")
FEWER_LENGTHS = 1_000
_BETWEEN = re.compile(r"[\s,;:]+")
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")


def sequences_of(text: str | None) -> dict[str, Any] | None:
    """The document of ``planner.question.sequences.Sequences`` that ``text`` means; None where nothing is said.

    Raises DocumentInvalid for what has not this form and for a file that holds no lengths; values are checked with the
    workload.
    """
    if text is None:
        return None
    kind, *options = (word.strip() for word in text.split(","))
    if kind not in KINDS:
        raise DocumentInvalid(f"{kind!r} is no kind of sequences", where=FLAG, hint=f"give {SAID}")
    said: dict[str, Any] = {"kind": kind}
    for name, value in key_values(options, FLAG, f"give {SAID}").items():
        percentile = _PERCENTILE.fullmatch(name)
        if not (percentile or name in ("mean", "file", "packing")):
            raise DocumentInvalid(f"{name!r} is no option with a value", where=FLAG, hint=f"give {SAID}")
        if percentile:
            said.setdefault("percentiles", []).append((float(percentile[1]), _number(value)))
        elif name == "file":
            said["histogram"] = read_lengths(Path(value))
        else:
            said[name] = _number(value) if name == "mean" else value
    return said


def read_lengths(path: Path) -> list[tuple[float, float]]:
    """Documents by length of a file: lengths one by one, lines of a length and a count, or JSON of either.

    More than ``MOST_LENGTHS`` different lengths become ``FEWER_LENGTHS`` of equally many documents, by their mean.
    """
    # Help is printed without the documents' library.
    from planner.question.sequences import MOST_LENGTHS

    text = file_text(path, FLAG, f"give {SAID}")
    counts: dict[float, float] = {}
    for length, count in _counted(text, path):
        if not (math.isfinite(length) and math.isfinite(count) and length >= 0 and count >= 0):
            raise DocumentInvalid(
                f"{length:g} and {count:g} are no length and count", where=f"{FLAG} {path}", hint=f"give {SAID}"
            )
        if length > 0:
            counts[length] = counts.get(length, 0.0) + count
    if not counts:
        raise DocumentInvalid("the file holds no length", where=f"{FLAG} {path}", hint=f"give {SAID}")
    return sorted(counts.items()) if len(counts) <= MOST_LENGTHS else _fewer(sorted(counts.items()))


def _counted(text: str, path: Path) -> list[tuple[float, float]]:
    if text.lstrip().startswith(("[", "{")):
        try:
            found = json.loads(text)
            if isinstance(found, dict):
                return [(float(key), float(value)) for key, value in found.items()]
            return [(float(each), 1.0) for each in found]
        except (ValueError, TypeError, RecursionError):
            raise DocumentInvalid(
                "the JSON is no list of lengths and no object of counts by length", where=f"{FLAG} {path}"
            ) from None
    pairs = []
    for line in text.splitlines():
        words = [word for word in _BETWEEN.split(line) if word]
        if len(words) > 2:
            raise DocumentInvalid(
                f"{line[:40]!r} is no length with a count", where=f"{FLAG} {path}", hint=f"give {SAID}"
            )
        if words:
            pairs.append((_number(words[0], str(path)), _number(words[1], str(path)) if len(words) == 2 else 1.0))
    return pairs


def _fewer(counted: list[tuple[float, float]]) -> list[tuple[float, float]]:
    total, before = sum(count for _, count in counted), 0.0
    tokens, documents = defaultdict[int, float](float), defaultdict[int, float](float)
    for length, count in counted:
        part = min(int(FEWER_LENGTHS * before / total), FEWER_LENGTHS - 1)
        tokens[part] += length * count
        documents[part] += count
        before += count
    return [(tokens[part] / documents[part], documents[part]) for part in sorted(documents) if documents[part] > 0]


def _number(word: str, where: str = "") -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DocumentInvalid(f"{word[:40]!r} is no number", where=f"{FLAG} {where}".strip(), hint=f"give {SAID}")
    return found
