"""How long the documents of a run are, and how they come to fill sequences of the workload's length.

``padded``: each sequence is one document, filled up to ``sequence_length`` with tokens that carry no loss.  ``packed``:
several documents share a sequence, attention stays within each (the document mask), and what no document fills is
padding.  Lengths are given as a mean, as percentiles, or as a histogram::

    mean alone        exponential:  length(u) = -mean ln(1 - u)
    percentiles       log-normal between two neighbours and beyond the outer ones: ln length(u) is linear in the normal
                      quantile of u; a mean beside two or more says how long the documents above the last one are, a
                      mean beside a single one makes them one log-normal distribution
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
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from profiles.document import Document

SequenceKind = Literal["padded", "packed"]
Packing = Literal["concatenated", "greedy", "balanced"]
Pairs = tuple[tuple[float, float], ...]

MOST_LENGTHS = 10_000
LONGEST_TOKENS = 1e9
STEEPEST = 2.0
_NORMAL = NormalDist()


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
        description="tokens of a document by percentile, such as 50: 300, 99: 4000",
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
        if len(set(at)) < len(at) or not all(0 < each < 100 for each in at):
            raise ValueError("percentiles: each once, above 0 and below 100")
        if list(tokens) != sorted(tokens) or not 1 <= tokens[0] <= tokens[-1] <= LONGEST_TOKENS:
            raise ValueError("percentiles: lengths from 1 token up that do not fall")
        if len(percentiles) == 1 and self.mean is None:
            raise ValueError("one percentile is no distribution: give the mean or a second percentile")
        _slopes(percentiles, self.mean)

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
        slopes = _slopes(self.percentiles, self.mean)
        points = [(_NORMAL.inv_cdf(at / 100.0), math.log(tokens)) for at, tokens in self.percentiles]
        scores = [_NORMAL.inv_cdf(share) for share in shares]
        return [max(1.0, min(LONGEST_TOKENS, math.exp(_logarithm(points, slopes, score)))) for score in scores]

    def words(self) -> str:
        """For a sentence: "documents of 512 tokens on average"."""
        if self.histogram is not None:
            return f"documents of {len(self.histogram):,} lengths, as counted"
        parts = [] if self.mean is None else [f"{self.mean:,.6g} tokens on average"]
        parts += [f"{tokens:,.6g} at percentile {at:g}" for at, tokens in self.percentiles or ()]
        return f"documents of {', '.join(parts)}"


def _slopes(percentiles: Pairs, mean: float | None) -> list[float]:
    """Slopes of ln length over the normal quantile: below the first percentile, between each two, above the last.

    Raises ValueError where no such distribution has this mean.
    """
    points = [(_NORMAL.inv_cdf(at / 100.0), math.log(tokens)) for at, tokens in percentiles]
    if len(points) == 1:
        slope = _single_slope(*points[0], mean or 0.0)
        return [slope, slope]
    inner = [(high - low) / (right - left) for (left, low), (right, high) in pairwise(points)]
    if mean is None:
        return [inner[0], *inner, inner[-1]]
    parts = zip([-math.inf, *(score for score, _ in points)], points, [inner[0], *inner], strict=False)
    below = sum(_part(*point, slope, left, point[0]) for left, point, slope in parts)
    last = points[-1]
    least, most = (below + _part(*last, slope, last[0], math.inf) for slope in (0.0, STEEPEST))
    if not least <= mean <= most:
        said = f"{math.ceil(least):,} to {math.floor(most):,} tokens"
        raise ValueError(f"with these percentiles the mean is {said}: leave it out, or give more percentiles")
    low, high = 0.0, STEEPEST
    for _ in range(60):
        slope = 0.5 * (low + high)
        short = below + _part(*last, slope, last[0], math.inf) < mean
        low, high = (slope, high) if short else (low, slope)
    return [inner[0], *inner, 0.5 * (low + high)]


def _single_slope(score: float, logarithm: float, mean: float) -> float:
    """Spread of the log-normal distribution through one percentile with this mean: the smaller of two."""
    squared = score**2 + 2.0 * (math.log(mean) - logarithm)
    roots = [] if squared < 0 else [score - math.sqrt(squared), score + math.sqrt(squared)]
    fitting = [root for root in roots if 0.0 <= root <= STEEPEST]
    if not fitting:
        raise ValueError(f"no log-normal distribution with this percentile has a mean of {mean:g} tokens")
    return fitting[0]


def _part(score: float, logarithm: float, slope: float, left: float, right: float) -> float:
    """What documents between two normal quantiles add to the mean, on a line through ``(score, logarithm)``."""
    whole = math.exp(logarithm - slope * score + 0.5 * slope**2)
    return whole * (_NORMAL.cdf(right - slope) - _NORMAL.cdf(left - slope))


def _logarithm(points: list[tuple[float, float]], slopes: list[float], score: float) -> float:
    above = bisect_right([each for each, _ in points], score)
    at, logarithm = points[max(above - 1, 0)]
    return logarithm + slopes[above] * (score - at)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, int | float) for each in value)


def _number(key: Any) -> Any:
    try:
        return float(key)
    except (TypeError, ValueError):
        return key
