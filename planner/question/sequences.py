"""How long the documents of a run are, and how they come to fill sequences of the workload's length.

``padded``: each sequence is one document, filled up to ``sequence_length`` with tokens that carry no loss.  ``packed``:
several documents share a sequence, attention stays within each (the document mask), and what no document fills is
padding.  Lengths are given as a mean, as percentiles, or as a histogram::

    mean alone        exponential:  length(u) = -mean ln(1 - u)
    percentiles       uniform between two neighbours, from 1 token up; percentile 100 is the longest document, or the
                      mean is given and says how long the longest one is
    histogram         documents of each length, as counted

Packing: ``concatenated`` runs documents on from one sequence into the next (pre-training: Megatron-LM's GPTDataset, TRL
``packing_strategy="wrapped"``, torchtitan's ConcatThenSplit); ``greedy`` puts whole documents, the longest first, where
they fit best (TRL ``bfd``, Ding et al., arXiv 2404.10830; Megatron-Bridge ``first_fit_decreasing``); ``balanced`` gives
each document to the sequence with the least attention work that has room (as WLB-LLM, arXiv 2503.17924).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from profiles.document import Document

SequenceKind = Literal["padded", "packed"]
Packing = Literal["concatenated", "greedy", "balanced"]
Pairs = tuple[tuple[float, float], ...]

MOST_LENGTHS = 10_000
LONGEST_TOKENS = 1e9


class Sequences(Document):
    """What sequences hold: one padded document or several packed ones, of these lengths."""

    kind: SequenceKind = Field(description="padded: one document a sequence; packed: several, attention within each")
    mean: float | None = Field(
        default=None,
        gt=0,
        le=LONGEST_TOKENS,
        exclude_if=lambda value: value is None,
        description="mean tokens of a document; alone = exponentially distributed",
    )
    percentiles: Pairs | None = Field(
        default=None,
        min_length=1,
        max_length=101,
        exclude_if=lambda value: value is None,
        description="tokens of a document by percentile, such as 50: 300, 99: 4000; 100 is the longest",
    )
    histogram: Pairs | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_LENGTHS,
        exclude_if=lambda value: value is None,
        description="documents by their length in tokens, such as 512: 100, 1024: 20",
    )
    packing: Packing | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="packed: concatenated (documents run on), greedy (whole documents, best fit), balanced (whole"
        " documents, equal attention work); absent = greedy",
    )

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, data: Any) -> Any:
        """A mapping is its pairs, ascending; JSON has words for its numbers."""
        if not isinstance(data, Mapping):
            return data
        said = dict(data)
        for name in ("percentiles", "histogram"):
            if isinstance(said.get(name), Mapping):
                said[name] = [(_number(key), value) for key, value in said[name].items()]
            if isinstance(said.get(name), list | tuple) and all(_is_pair(each) for each in said[name]):
                said[name] = sorted(said[name])
        return said

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.packing is not None and self.kind == "padded":
            raise ValueError("packing is about packed sequences; padded ones hold one document each")
        if self.histogram is not None:
            if self.mean is not None or self.percentiles is not None:
                raise ValueError("a histogram says all about the lengths: leave mean and percentiles out")
            return self._counted(self.histogram)
        if self.mean is None and self.percentiles is None:
            raise ValueError("give the documents' mean, percentiles or a histogram")
        if self.percentiles is not None:
            self._ascending(self.percentiles)
        return self

    def _counted(self, histogram: Pairs) -> Self:
        lengths, counts = zip(*histogram, strict=True)
        if len(set(lengths)) < len(lengths) or not all(1 <= each <= LONGEST_TOKENS for each in lengths):
            raise ValueError("histogram: lengths from 1 token up, each once")
        if not all(0 <= count < math.inf for count in counts) or sum(counts) <= 0:
            raise ValueError("histogram: counts must not be negative and not all zero")
        return self

    def _ascending(self, percentiles: Pairs) -> None:
        at, tokens = zip(*percentiles, strict=True)
        if len(set(at)) < len(at) or not all(0 < each <= 100 for each in at):
            raise ValueError("percentiles: each once, above 0 and up to 100")
        if list(tokens) != sorted(tokens) or not 1 <= tokens[0] <= tokens[-1] <= LONGEST_TOKENS:
            raise ValueError("percentiles: lengths from 1 token up that do not fall")
        if at[-1] == 100:
            if self.mean is not None:
                raise ValueError("percentile 100 and the mean both say how long the longest documents are: give one")
        elif self.mean is None:
            raise ValueError("give the mean, or percentile 100, which is the longest document")
        elif self._longest(self.mean) < tokens[-1]:
            least = _below(percentiles) + (1.0 - at[-1] / 100.0) * tokens[-1]
            raise ValueError(f"with these percentiles the mean is at least {math.ceil(least):,} tokens")

    def _longest(self, mean: float) -> float:
        """The longest document with which documents above the last percentile bring the mean about."""
        percentiles = self.percentiles or ()
        at, tokens = percentiles[-1]
        return float(2.0 * (mean - _below(percentiles)) / (1.0 - at / 100.0) - tokens)

    @property
    def packed_by(self) -> Packing | None:
        """How documents are packed; None where they are padded."""
        return None if self.kind == "padded" else (self.packing or "greedy")

    def lengths(self, count: int) -> list[float]:
        """Lengths of ``count`` documents in equal steps of probability, ascending; not cut, 1 token at the least."""
        shares = [(number + 0.5) / count for number in range(count)]
        if self.histogram is not None:
            sums = list(accumulate(documents for _, documents in self.histogram))
            return [self.histogram[bisect_right(sums, share * sums[-1])][0] for share in shares]
        if self.percentiles is None:
            mean = self.mean or 1.0
            return [max(1.0, -mean * math.log1p(-share)) for share in shares]
        points = [(0.0, 1.0), *((at / 100.0, tokens) for at, tokens in self.percentiles)]
        if points[-1][0] < 1.0:
            points.append((1.0, self._longest(self.mean or 0.0)))
        return [_between(points, share) for share in shares]

    def words(self) -> str:
        """For a sentence: "documents of 512 tokens on average"."""
        if self.histogram is not None:
            return f"documents of {len(self.histogram):,} lengths, as counted"
        parts = [] if self.mean is None else [f"{self.mean:,.6g} tokens on average"]
        parts += [f"{tokens:,.6g} at percentile {at:g}" for at, tokens in self.percentiles or ()]
        return f"documents of {', '.join(parts)}"


def _below(percentiles: Pairs) -> float:
    """What documents up to the last percentile add to the mean."""
    total, before, shorter = 0.0, 0.0, 1.0
    for at, tokens in percentiles:
        total += (at - before) / 100.0 * 0.5 * (shorter + tokens)
        before, shorter = at, tokens
    return total


def _between(points: list[tuple[float, float]], share: float) -> float:
    upper = min(bisect_right([at for at, _ in points], share), len(points) - 1)
    (left, low), (right, high) = points[upper - 1], points[upper]
    return low + (high - low) * (share - left) / (right - left)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, int | float) for each in value)


def _number(key: Any) -> Any:
    try:
        return float(key)
    except (TypeError, ValueError):
        return key
