"""A file of requests that were served, as traffic: their lengths, and how many came a second.

JSON lines or CSV with a heading.  Names of a column: of input tokens ``input_tokens``, ``input_length``,
``prompt_tokens``, ``prompt_len``, ``isl``, ``ContextTokens``; of output tokens ``output_tokens``, ``output_length``,
``completion_tokens``, ``output_len``, ``osl``, ``GeneratedTokens``; of the arrival, which may be missing,
``arrival_s``, ``timestamp_s``, ``arrival_time`` (seconds) or ``timestamp`` (milliseconds, as in Mooncake's traces).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from planner.serving.traffic import LONGEST_TOKENS, Lengths
from profiles.errors import DocumentInvalid

INPUTS = ("input_tokens", "input_length", "prompt_tokens", "prompt_len", "isl", "ContextTokens")
OUTPUTS = ("output_tokens", "output_length", "completion_tokens", "output_len", "osl", "GeneratedTokens")
SECONDS = ("arrival_s", "timestamp_s", "arrival_time")
MILLISECONDS = ("timestamp",)
MOST_VALUES = 64
"""Distinct lengths that a distribution keeps; more are joined into equal shares of the requests."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """What a file of requests says."""

    input_tokens: Lengths
    output_tokens: Lengths
    num_requests: int
    requests_per_s: float | None
    """Requests over the time between the first and the last arrival; None where no arrivals are said."""


def read_request_trace(text: str, where: str) -> RequestTrace:
    """Read the text of a trace.  Raises DocumentInvalid with the line."""
    inputs, outputs, arrivals = [], [], []
    for line, row in _rows(text, where):
        inputs.append(_tokens(row, INPUTS, where, line))
        outputs.append(_tokens(row, OUTPUTS, where, line))
        arrival = _arrival(row, where, line)
        if arrival is not None:
            arrivals.append(arrival)
    if not inputs:
        raise DocumentInvalid("the trace has no request", where=where, hint="one JSON object or CSV row a request")
    if arrivals and len(arrivals) != len(inputs):
        raise DocumentInvalid(
            f"{len(arrivals):,} of {len(inputs):,} requests say when they arrived",
            where=where,
            hint="say it for all of them or for none",
        )
    span = max(arrivals) - min(arrivals) if arrivals else 0.0
    rate = (len(arrivals) - 1) / span if span > 0 else None
    return RequestTrace(lengths_of(inputs), lengths_of(outputs), len(inputs), rate)


def lengths_of(tokens: Sequence[int]) -> Lengths:
    """The distribution of these numbers: each distinct one, or the means of ``MOST_VALUES`` equal shares."""
    counted = sorted(Counter(tokens).items())
    if len(counted) == 1:
        return Lengths(mean=float(counted[0][0]))
    if len(counted) > MOST_VALUES:
        ordered = sorted(tokens)
        cuts = [len(ordered) * part // MOST_VALUES for part in range(MOST_VALUES + 1)]
        shares = [ordered[low:high] for low, high in pairwise(cuts) if high > low]
        counted = [(max(1, round(sum(share) / len(share))), len(share)) for share in shares]
    values = tuple(value for value, _ in counted)
    return Lengths(kind="table", tokens=values, weights=tuple(float(count) for _, count in counted))


def _rows(text: str, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not text.lstrip().startswith("{"):
        yield from enumerate(csv.DictReader(io.StringIO(text)), start=2)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DocumentInvalid(
                f"no JSON: {error.msg}", where=f"{where}:{number}", hint="one object a line"
            ) from None
        if not isinstance(row, dict):
            raise DocumentInvalid("a request must be an object", where=f"{where}:{number}", hint="one object a line")
        yield number, row


def _tokens(row: Mapping[str, Any], names: tuple[str, ...], where: str, line: int) -> int:
    name = next((name for name in names if row.get(name) not in {None, ""}), None)
    if name is None:
        hint = f"a column of one of these names: {', '.join(names)}"
        raise DocumentInvalid(f"no {names[0]}", where=f"{where}:{line}", hint=hint)
    try:
        tokens = int(float(row[name]))
    except (TypeError, ValueError, OverflowError):
        tokens = 0
    if not 1 <= tokens <= LONGEST_TOKENS:
        hint = f"a whole number from 1 to {LONGEST_TOKENS:,}"
        raise DocumentInvalid(f"{name} = {str(row[name])[:40]}", where=f"{where}:{line}", hint=hint)
    return tokens


def _arrival(row: Mapping[str, Any], where: str, line: int) -> float | None:
    for names, unit in ((SECONDS, 1.0), (MILLISECONDS, 1e-3)):
        for name in names:
            if row.get(name) in {None, ""}:
                continue
            try:
                at = float(row[name]) * unit
            except (TypeError, ValueError):
                at = math.nan
            if not math.isfinite(at):
                hint = "seconds as a number (timestamp: milliseconds)"
                raise DocumentInvalid(f"{name} = {str(row[name])[:40]}", where=f"{where}:{line}", hint=hint)
            return at
    return None
