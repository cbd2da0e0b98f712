"""Requests: how long they are, how they arrive, and what is promised to them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from profiles.document import Document

LONGEST_TOKENS = 10_000_000
LengthKind = Literal["constant", "uniform", "lognormal", "table"]


class Lengths(Document):
    """Tokens of a request, of its input or of its output.

    constant: every request has ``mean``.  uniform: all whole numbers from ``low`` to ``high``.  lognormal: of this
    ``mean`` and this coefficient of variation ``spread``.  table: ``tokens`` with these ``weights``.
    """

    kind: LengthKind = "constant"
    mean: float | None = Field(default=None, gt=0, le=LONGEST_TOKENS)
    spread: float | None = Field(default=None, gt=0, le=10, description="standard deviation over mean (lognormal)")
    low: int | None = Field(default=None, gt=0, le=LONGEST_TOKENS)
    high: int | None = Field(default=None, gt=0, le=LONGEST_TOKENS)
    tokens: tuple[int, ...] = Field(default=(), max_length=100_000)
    weights: tuple[float, ...] = Field(default=(), max_length=100_000)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {
            "constant": self.mean is not None,
            "uniform": self.low is not None and self.high is not None,
            "lognormal": self.mean is not None and self.spread is not None,
            "table": bool(self.tokens) and len(self.tokens) == len(self.weights),
        }
        needs = {
            "constant": "mean",
            "uniform": "low and high",
            "lognormal": "mean and spread",
            "table": "tokens and as many weights",
        }
        if not needed[self.kind]:
            raise ValueError(f"{self.kind} lengths need {needs[self.kind]}")
        if self.kind == "uniform" and (self.low or 0) > (self.high or 0):
            raise ValueError(f"low = {self.low} is above high = {self.high}")
        if self.kind == "table" and (min(self.tokens) < 1 or min(self.weights) < 0 or sum(self.weights) <= 0):
            raise ValueError("tokens are at least 1, weights at least 0, and some weight is above 0")
        return self


class ServingTraffic(Document):
    """What arrives.

    ``concurrency``: so many requests are always in flight, a new one is sent when one ends (closed loop).
    ``requests_per_s``: they arrive as a Poisson process (open loop).  ``all_at_once``: so many requests are sent
    together and the engine works them off.  Exactly one of the three, or none where the search may choose the load.
    """

    input_tokens: Lengths
    output_tokens: Lengths
    concurrency: int | None = Field(default=None, gt=0, le=1_000_000)
    requests_per_s: float | None = Field(default=None, gt=0, le=1e6)
    all_at_once: int | None = Field(default=None, gt=0, le=10_000_000)
    prefix_share: float = Field(
        default=0.0, ge=0, lt=1, description="part of a request's input tokens that the prefix cache holds already"
    )
    acceptance: float | None = Field(
        default=None, ge=0, le=1, description="chance that a drafted token is accepted (speculative decoding)"
    )

    @model_validator(mode="after")
    def _one_arrival(self) -> Self:
        given = [self.concurrency is not None, self.requests_per_s is not None, self.all_at_once is not None]
        if sum(given) > 1:
            raise ValueError("concurrency, requests_per_s and all_at_once exclude each other: give one")
        return self


class ServiceLevel(Document):
    """What is promised to a request, at a percentile of all; what is not given is not promised.

    ``ttft_s``: to its first token.  ``tpot_s``: mean time of each further token.  ``end_to_end_s``: to its last.
    """

    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    end_to_end_s: float | None = Field(default=None, gt=0)
    percentile: float = Field(default=50.0, gt=0, lt=100, description="of requests that see at most these times")
