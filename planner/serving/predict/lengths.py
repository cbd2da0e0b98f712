"""Moments of the lengths of requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.serving.traffic import Lengths, ServingTraffic


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, variation and longest of a length."""

    mean: float
    variation: float
    """Standard deviation over mean."""
    longest: float
    """The longest; of lognormal lengths that of 1 in 1,000."""


def moments(lengths: Lengths) -> Moments:
    """Moments of a distribution of lengths."""
    match lengths.kind:
        case "constant":
            return Moments(float(lengths.mean or 1), 0.0, float(lengths.mean or 1))
        case "uniform":
            low, high = float(lengths.low or 1), float(lengths.high or 1)
            mean = (low + high) / 2
            return Moments(mean, math.sqrt(((high - low + 1) ** 2 - 1) / 12) / mean, high)
        case "lognormal":
            mean, spread = float(lengths.mean or 1), float(lengths.spread or 1)
            scale = math.sqrt(math.log1p(spread**2))
            return Moments(mean, spread, max(mean, mean * math.exp(3.09 * scale - scale**2 / 2)))
        case "table":
            tokens = np.array(lengths.tokens, dtype=np.float64)
            weights = np.array(lengths.weights) / sum(lengths.weights)
            mean = float(tokens @ weights)
            return Moments(mean, float(np.sqrt(((tokens - mean) ** 2) @ weights)) / mean, float(tokens.max()))


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """What a request is to the scheduler, means."""

    new_tokens: float
    """Prompt tokens that the prefix cache does not hold."""
    cached_tokens: float
    output_tokens: float
    longest_tokens: float
    """Input and output of the longest request."""
    output_variation: float

    @property
    def context(self) -> float:
        """Tokens before a decoded one: the prompt and half of the output."""
        return self.new_tokens + self.cached_tokens + self.output_tokens / 2


def request_sizes(traffic: ServingTraffic, *, prefix_caching: bool = True) -> RequestSizes:
    """Mean sizes of the traffic's requests."""
    inputs, outputs = moments(traffic.input_tokens), moments(traffic.output_tokens)
    share = traffic.prefix_share if prefix_caching else 0.0
    return RequestSizes(
        new_tokens=max(inputs.mean * (1 - share), 1.0),
        cached_tokens=inputs.mean * share,
        output_tokens=max(outputs.mean, 1.0),
        longest_tokens=inputs.longest + outputs.longest,
        output_variation=outputs.variation,
    )
