"""``training.json``: what the training script needs and Accelerate's config cannot hold.

DeepSpeed's document (mesh, recomputed layers) with batch, optimizer and the number format of gradient reduction.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.backends.deepspeed import training_document as deepspeed
from planner.backends.deepspeed.denoiser_config import sample_shape
from planner.backends.emission.emitted import document_of
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.optimizers import OptimizerName
from planner.question.problem import Workload
from profiles.document import Document

TRAINING_FILE = deepspeed.TRAINING_FILE


class LatentSample(Document):
    """One sample of a diffusion transformer."""

    shape: tuple[int, ...] = Field(description="of the latents as the class takes them")
    grid: tuple[int, int, int] = Field(description="latent tokens: frames, rows, columns")
    text_tokens: int = Field(gt=0)


class ImageSample(Document):
    """The images of one sample, for a model behind a vision tower."""

    per_sample: int = Field(gt=0)
    patches: int = Field(gt=0, description="of one image, a square of them")
    tokens: int = Field(gt=0, description="of the language model for one image")


class AccelerateTraining(deepspeed.TrainingDocument):
    """Everything that ``train_accelerate.py`` reads beside the model's config."""

    micro_batch_size: int = Field(ge=1)
    num_microbatches: int = Field(ge=1)
    optimizer: OptimizerName
    reduce_dtype: Literal["float32", "bfloat16", "float16"]
    source_length: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    sample: LatentSample | None = Field(default=None, exclude_if=lambda value: value is None)
    images: ImageSample | None = Field(default=None, exclude_if=lambda value: value is None)


def training_document(plan: Plan) -> AccelerateTraining:
    """The document of a plan."""
    s, workload = plan.chosen(), plan.problem.workload
    base = deepspeed.training_document(plan)
    reduce_dtype = "float32" if workload.gradient_dtype == "fp32" else base.dtype
    return AccelerateTraining.model_validate(
        base.model_dump()
        | {
            "micro_batch_size": s.micro_batch_size,
            "num_microbatches": s.num_microbatches,
            "optimizer": workload.optimizer,
            "reduce_dtype": reduce_dtype,
            "source_length": workload.source_length,
            "sample": _sample(plan.problem.model, workload),
            "images": _images(plan.problem.model, workload),
        }
    )


def _sample(model: ModelSpec, workload: Workload) -> LatentSample | None:
    if model.denoiser is None:
        return None
    if workload.sample is None:  # the space's rule A16 says so before
        raise DocumentInvalid("the sample has no sides", where="/workload/sample", hint="--sample FxHxW")
    grid = model.denoiser.sample_grid(*workload.sample)
    text = workload.source_length or model.denoiser.text_tokens
    return LatentSample(shape=sample_shape(model.denoiser, grid), grid=grid, text_tokens=text)


def _images(model: ModelSpec, workload: Workload) -> ImageSample | None:
    tower = model.vision
    if tower is None:
        return None
    return ImageSample(
        per_sample=workload.images_per_sample, patches=tower.patches_per_image, tokens=tower.tokens_per_image
    )


def read_training(text: str) -> AccelerateTraining:
    """Parse the file.  Raises DocumentInvalid with every finding."""
    return document_of(AccelerateTraining, text, TRAINING_FILE)
