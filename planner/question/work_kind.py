"""What a workload says beside its sizes; a sweep says it for all of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.spec import Modality
from planner.question.fp8_recipes import FP8_RECIPES, Fp8RecipeName
from planner.question.item_counts import ItemCounts
from planner.question.optimizer_states import OptimizerStates
from planner.question.optimizers import OptimizerName
from planner.question.routing import ExpertLoad
from planner.question.sample import Sample
from planner.question.sequences import Sequences
from planner.question.training import PRETRAIN, Training
from profiles.document import Document

Precision = Literal["bf16", "fp16", "fp8"]
ITEMS: Mapping[Modality, str] = {"vision": "images_per_sample", "audio": "audio_clips_per_sample"}
"""Where a workload says how many items a tower reads."""
COUNTS: Mapping[Modality, str] = {"vision": "image_counts", "audio": "audio_clip_counts"}
"""Where it says them as a distribution."""


class WorkKind(Document):
    """How the samples of a step are computed: precision, optimizer, kind of training, what they hold."""

    source_length: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda value: value is None,
        description="tokens that the encoder of an encoder-decoder reads a sample; absent = as many as sequence_length",
    )
    sample: Sample | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="frames, height and width in pixels of one sample of a diffusion transformer, such as 81x480x832;"
        " sequence_length is then the tokens that it makes",
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
    image_counts: ItemCounts | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="images of a sample as a distribution, in place of images_per_sample: mean:3.2, p50:1+p99:8 or"
        " samples by their number, 0:120+1:400",
    )
    audio_clip_counts: ItemCounts | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="clips of audio of a sample as a distribution, in place of audio_clips_per_sample",
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

    @model_validator(mode="after")
    def _one_number_of_items(self) -> Self:
        """A number for all samples, or a distribution."""
        for modality, field in ITEMS.items():
            if getattr(self, field) and getattr(self, COUNTS[modality]) is not None:
                raise ValueError(f"/{COUNTS[modality]}: {field} says a number for every sample; drop one of them")
        return self

    @property
    def counted(self) -> bool:
        """Whether samples have unequal numbers of items."""
        return any(self.counts_of(modality) is not None for modality in COUNTS)

    def counts_of(self, modality: Modality) -> ItemCounts | None:
        """The distribution of a sample's items for the tower of a modality; None where all have as many."""
        counts: ItemCounts | None = getattr(self, COUNTS[modality])
        return counts

    def items_per_sample(self, modality: Modality) -> float:
        """Images or clips of a sample that go through the tower of a modality, on average."""
        counts = self.counts_of(modality)
        return int(getattr(self, ITEMS[modality])) if counts is None else counts.expected
