"""What a workload says beside its sizes; a sweep says it for all of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.spec import Modality
from planner.question.fp8_recipes import FP8_RECIPES, Fp8RecipeName
from planner.question.optimizer_states import OptimizerStates
from planner.question.optimizers import OptimizerName
from planner.question.routing import ExpertLoad
from planner.question.sequences import Sequences
from planner.question.training import PRETRAIN, Training
from profiles.document import Document

Precision = Literal["bf16", "fp16", "fp8"]
ITEMS: Mapping[Modality, str] = {"vision": "images_per_sample", "audio": "audio_clips_per_sample"}
"""Where a workload says how many items a tower reads."""


class WorkKind(Document):
    """How the samples of a step are computed: precision, optimizer, kind of training, what they hold."""

    source_length: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda value: value is None,
        description="tokens that the encoder of an encoder-decoder reads a sample; absent = as many as sequence_length",
    )
    precision: Precision = "bf16"
    fp8_recipe: Fp8RecipeName | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="how operands of narrow matrix products are scaled, with precision fp8; nvfp4 takes them in 4 bit;"
        " absent = the back-end's own",
    )
    optimizer: OptimizerName = "adam"
    optimizer_states: OptimizerStates | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="number formats of moments and master weights, of adam_precision_aware alone; absent = all fp32",
    )
    gradient_dtype: Literal["fp32", "bf16"] = Field(
        default="fp32", description="dtype in which gradients are accumulated and reduced"
    )
    images_per_sample: int = Field(default=0, ge=0, description="images a sample, for models with a vision tower")
    audio_clips_per_sample: int = Field(
        default=0,
        ge=0,
        exclude_if=lambda clips: clips == 0,
        description="clips of audio a sample, each as long as the front end of the audio tower takes",
    )
    dropout: bool = False
    routing: ExpertLoad | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="how tokens spread over routed experts: even, zipf with an exponent, or histogram with the tokens"
        " of each expert as a training log gives them; absent = as published logs show (planner.question.routing)",
    )
    training: Training | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="which weights learn and by which loss: full, lora, qlora; dpo, orpo, reward; absent = pretrain",
    )
    sequences: Sequences | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="lengths of documents, and whether sequences are padded or packed with several; absent = every"
        " sequence is one document of its whole length",
    )

    @model_validator(mode="after")
    def _states_of_their_optimizer(self) -> Self:
        """Formats of states belong to the optimizer that has them."""
        if self.optimizer_states is not None and self.optimizer != "adam_precision_aware":
            raise ValueError(f"/optimizer_states: {self.optimizer} has no choice of them; use adam_precision_aware")
        return self

    @model_validator(mode="after")
    def _recipe_of_its_precision(self) -> Self:
        """Recipes scale 8-bit operands."""
        if self.fp8_recipe is not None and self.precision != "fp8":
            raise ValueError(f"/fp8_recipe: {self.precision} has nothing to scale; use precision fp8")
        return self

    @property
    def matmul_format(self) -> str:
        """What the layers' matrix products take: the precision, or the format of a recipe (fp4 of nvfp4)."""
        return self.precision if self.fp8_recipe is None else FP8_RECIPES[self.fp8_recipe].format

    @property
    def trained(self) -> Training:
        """How the model is trained; pre-training where nothing is said."""
        return self.training or PRETRAIN

    def items_per_sample(self, modality: Modality) -> int:
        """Images or clips of a sample that go through the tower of a modality."""
        return int(getattr(self, ITEMS[modality]))
