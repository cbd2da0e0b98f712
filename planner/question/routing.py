"""How unevenly tokens reach the routed experts, as a question says it, and what the hottest part of them gets.

A rank that holds a part of the experts takes the tokens of all of them; ranks wait for each other at every exchange, so
a layer takes as long as on the hottest of them::

    hottest(n) = n * max over n equal parts of the experts ( sum of their shares of the tokens )

Experts lie in the order of their numbers.  ``histogram``: tokens of each expert as a training log gives them.
``zipf``: shares proportional to 1 / rank^exponent; which number is how hot is unknown, so that ``hottest`` is the mean
over ``ORDERS`` fixed shuffles.  ``even``: hottest = 1, what benchmarks with forced balance run.

A question that says nothing gets what published logs show, ``hottest(n) = 1 + most (1 - n^-RISE)``, which has two
figures.  Single experts: the fullest of 64 gets 1.72 times the mean under an auxiliary loss, 1.04 times under a bias on
the scores (arXiv 2408.15664, table 2, MaxVio of the 1B model; from memory), which is what models with sigmoid scores
train with (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).  Ranks of many experts: Qwen3-235B, 16 experts a rank, takes
1.245 times as long at 16,384 tokens (forced balance 295, dropless 237 TFLOP/s: Megatron-MoE-ModelZoo,
best_practice/Qwen3/readme.md@c1ad0b5);
``RISE`` is fitted on that pair of runs, the three other pairs of the table are held out
(``tests/unit/cost/test_expert_load.py``).
Megatron-LM's imbalance workloads W0 to W7 (its pull request 7488) are not offered: the thread names what each isolates,
not its weights.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.spec import ModelSpec
from profiles.document import Document

MOST_EXPERTS = 100_000
STEEPEST = 4.0


class ExpertLoad(Document):
    """Shares of the tokens that the routed experts of every layer get."""

    kind: Literal["even", "zipf", "histogram", "typical"]
    exponent: float | None = Field(
        default=None, ge=0, le=STEEPEST, exclude_if=lambda value: value is None, description="of zipf: 0 = even"
    )
    most: float | None = Field(
        default=None,
        ge=0,
        le=MOST_EXPERTS,
        exclude_if=lambda value: value is None,
        description="of typical: what the hottest of very many parts gets beyond the mean, over the mean",
    )
    tokens: tuple[float, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_EXPERTS,
        exclude_if=lambda value: value is None,
        description="of histogram: tokens of each expert, in the order of their numbers",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Each kind with what it needs and nothing else."""
        needed = {"even": "", "zipf": "exponent", "histogram": "tokens", "typical": "most"}[self.kind]
        given = [name for name in ("exponent", "tokens", "most") if getattr(self, name) is not None]
        if given != [name for name in (needed,) if name]:
            raise ValueError(
                "give kind even alone, zipf with exponent, histogram with tokens or typical with most, and nothing else"
            )
        if self.tokens is not None:
            if not all(0.0 <= count < float("inf") for count in self.tokens):
                raise ValueError("tokens must be finite and not negative")
            if sum(self.tokens) <= 0.0:
                raise ValueError("tokens must not all be zero")
        return self

    @property
    def words(self) -> str:
        """For a sentence: "by a Zipf exponent of 0.3"."""
        if self.kind == "zipf":
            return f"by a Zipf exponent of {self.exponent:g}"
        words = {"even": "evenly", "histogram": "by the given histogram", "typical": "as published logs show"}
        return words[self.kind]


EVEN = ExpertLoad(kind="even")
RISE = 0.6
"""How fast ``hottest`` of a typical load rises with the number of parts (see module)."""
FULLEST_OF = 64
BY_LOSS = ExpertLoad(kind="typical", most=round(0.72 / (1.0 - FULLEST_OF**-RISE), 4))
BY_BIAS = ExpertLoad(kind="typical", most=round(0.04 / (1.0 - FULLEST_OF**-RISE), 4))


def load_of(asked: ExpertLoad | None, model: ModelSpec) -> ExpertLoad:
    """The load that a question asks for; without one what is typical of the way in which the model is balanced."""
    if asked is not None:
        return asked
    mixtures = [kind.moe for kind in model.layer_kinds if kind.moe is not None]
    return BY_BIAS if mixtures and all(moe.score_function == "sigmoid" for moe in mixtures) else BY_LOSS


def of_other_experts(asked: ExpertLoad | None, model: ModelSpec) -> str:
    """Why a histogram is not of this model; empty where it is, or where none is asked for."""
    if asked is None or asked.tokens is None:
        return ""
    held = {kind.moe.num_experts for kind in model.layer_kinds if kind.moe is not None}
    if held == {len(asked.tokens)}:
        return ""
    counts = " and ".join(map(str, sorted(held))) or "none"
    return f"the histogram counts the tokens of {len(asked.tokens)} experts, the model's layers have {counts}"
