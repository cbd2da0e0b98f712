"""The RL question: models, what a step samples and trains on, how far generation may run ahead, the cluster."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from planner.model.spec import ModelSpec
from planner.question.sequences import Sequences
from planner.rl.words import TRAINERS, Algorithm, Placement, Synchrony, Trainer
from profiles.cluster import Cluster
from profiles.document import Document

MOST_SAMPLES = 10_000_000


class Reward(Document):
    """How a sample is judged, and how long that takes.

    ``rule``: in no time.  ``sandbox``: outside of the devices, ``latency`` seconds a sample, as many at once as there
    are.  ``model``: a model of its own, which reads every sample once.
    """

    kind: Literal["rule", "sandbox", "model"] = "rule"
    latency_s: float = Field(default=0.0, ge=0, description="mean seconds from a sample's end to its reward")
    longest_latency_s: float | None = Field(default=None, gt=0, description="of the slowest sample; none = 5 means")
    model: ModelSpec | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.model is not None) != (self.kind == "model"):
            raise ValueError("a reward of kind model has a model, and no other kind has one")
        if self.kind == "rule" and self.latency_s:
            raise ValueError("a rule takes no time; use kind sandbox for a latency")
        return self


class Turns(Document):
    """Agents: a sample is generated in several turns, and a tool answers between two of them."""

    mean: float = Field(ge=1, le=1000, description="turns of a sample")
    tool_latency_s: float = Field(ge=0, description="mean seconds of one answer")
    tool_tokens: float = Field(default=0.0, ge=0, description="tokens of one answer, which are read and not generated")


class RlConstraints(Document):
    """What the answer must respect."""

    placements: tuple[Placement, ...] = Field(default=("colocated", "split"), min_length=1)
    synchrony: tuple[Synchrony, ...] = Field(default=("synchronous",), min_length=1)
    trainers: tuple[Trainer, ...] = Field(default=TRAINERS, min_length=1, description="software that may train")
    trainer_pins: dict[str, int | str | bool] = Field(default_factory=dict)
    rollout_pins: dict[str, int] = Field(default_factory=dict, description="tp, pp, ep of the engines")
    partial_rollout: bool = Field(default=True, description="asynchronous: samples go on under new weights")

    @model_validator(mode="after")
    def _known_pins(self) -> Self:
        unknown = sorted(set(self.rollout_pins) - {"tp", "pp", "ep"})
        if unknown:
            raise ValueError(f"rollout_pins are tp, pp and ep of the engines, not {', '.join(unknown)}")
        if self.rollout_pins.get("pp", 1) != 1:
            raise ValueError("engines of RL have no pipeline here: leave pp out of rollout_pins")
        return self


class RlQuestion(Document):
    """What a step samples and trains on: ``prompts * samples_per_prompt`` responses, and all of them are trained on."""

    algorithm: Algorithm = "grpo"
    reference: bool | None = Field(
        default=None,
        description="whether a frozen reference gives log-probabilities too; null = as the algorithm has it (dapo and"
        " rloo have none)",
    )
    old_log_prob: bool = Field(default=True, description="whether the trainer computes them again before the update")
    reward: Reward = Reward()
    prompts: int = Field(gt=0, le=MOST_SAMPLES, description="prompts of a step")
    samples_per_prompt: int = Field(default=1, gt=0, le=100_000)
    prompt_tokens: Sequences
    response_tokens: Sequences
    longest_response: int | None = Field(default=None, gt=0, description="tokens at which a response is cut")
    turns: Turns | None = None
    mini_batches: int = Field(default=1, gt=0, description="optimizer steps of an epoch over a step's samples")
    epochs: int = Field(default=1, gt=0)
    staleness: float = Field(default=0.0, ge=0, le=100, description="asynchronous: part of a step's samples ahead")
    over_sampling: float = Field(default=1.0, ge=1, le=100, description="started over needed samples of a step")
    trainer_offload: bool = Field(default=True, description="colocated: the trainer's state leaves for the host")
    precision: Literal["bf16", "fp16", "fp8"] = "bf16"
    constraints: RlConstraints = RlConstraints()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.num_samples % self.mini_batches:
            raise ValueError(f"mini_batches = {self.mini_batches} does not divide {self.num_samples} samples of a step")
        if "asynchronous" not in self.constraints.synchrony and self.staleness:
            raise ValueError("staleness is about asynchronous steps: allow them in constraints.synchrony")
        if self.constraints.placements == ("colocated",) and "synchronous" not in self.constraints.synchrony:
            raise ValueError("colocated steps are synchronous: allow that, or split placements")
        return self

    @property
    def has_reference(self) -> bool:
        """Whether a reference runs: DAPO leaves the divergence out (arXiv 2503.14476, 2.3), so does RLOO's baseline."""
        return self.algorithm not in ("dapo", "rloo") if self.reference is None else self.reference

    @property
    def num_samples(self) -> int:
        """Responses that a step trains on."""
        return self.prompts * self.samples_per_prompt


class RlProblem(RlQuestion):
    """One complete question."""

    schema_version: Literal[1] = 1
    actor: ModelSpec
    cluster: Cluster
    critic: ModelSpec | None = Field(default=None, description="ppo only; none = as large as the actor")

    @model_validator(mode="before")
    @classmethod
    def _critic_of_ppo(cls, data: Any) -> Any:
        """PPO's critic is as large as its actor where nobody says otherwise."""
        if isinstance(data, dict) and data.get("algorithm") == "ppo" and data.get("critic") is None:
            return {**data, "critic": data.get("actor")}
        return data

    @model_validator(mode="after")
    def _critic_of_no_other(self) -> Self:
        if self.critic is not None and self.algorithm != "ppo":
            raise ValueError(f"only ppo has a critic, not {self.algorithm}")
        if len(self.cluster.pools) > 1:
            raise ValueError("a cluster of one pool: devices of several kinds are not divided yet")
        return self
