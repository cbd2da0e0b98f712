"""``training.json``, for what DeepSpeed's JSON cannot hold: mesh, stages, recompute.

``mesh`` is outermost axis first, the order in which DeepSpeed numbers ranks: stages outermost; data parallelism
inside; tensor or sequence ranks are neighbours.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from planner.backends.emission.emitted import document_of
from planner.backends.emission.layout import Layout, StageLayout, layout_of
from planner.plan.plan import ChunkPlan, Plan, StageOffload, StageRecompute
from planner.question.training import Training
from profiles.document import Document

TRAINING_FILE = "training.json"


class Mesh(Document):
    """Degrees of the axes, outermost first; their product is the number of ranks."""

    pipe: int = Field(ge=1)
    data_replicate: int = Field(ge=1)
    data_shard: int = Field(ge=1)
    sequence: int = Field(ge=1)
    tensor: int = Field(ge=1)

    @property
    def world_size(self) -> int:
        """Ranks."""
        return self.pipe * self.data_replicate * self.data_shard * self.sequence * self.tensor


class Chunk(Document):
    """Consecutive layers of one stage; the first ``recomputed_layers`` of them are recomputed in the backward pass."""

    chunk: int = Field(ge=0)
    first_layer: int = Field(ge=0)
    num_layers: int = Field(ge=0)
    recomputed_layers: int = Field(ge=0)
    embedding: bool
    head: bool


class Stage(Document):
    """One pipeline rank."""

    recompute: Literal["none", "full"]
    chunks: tuple[Chunk, ...] = Field(min_length=1)


class TrainingDocument(Document):
    """Everything that ``train_deepspeed.py`` reads beside ``ds_config.json`` and ``model_config.json``."""

    schema_version: Literal[1] = 1
    sequence_length: int = Field(ge=1)
    dtype: Literal["bfloat16", "float16"]
    mesh: Mesh
    schedule: Literal["1f1b", "dualpipev"]
    recompute: Literal["none", "full"]
    stages: tuple[Stage, ...] = Field(min_length=1)
    training: Training | None = Field(default=None, exclude_if=lambda value: value is None)


def training_document(plan: Plan) -> TrainingDocument:
    """The document of a plan of the back-end's space."""
    s = plan.chosen()
    return TrainingDocument.model_validate(
        {
            "sequence_length": plan.problem.workload.sequence_length,
            "dtype": {"fp16": "float16"}.get(plan.problem.workload.precision, "bfloat16"),
            "mesh": {
                "pipe": s.pp,
                "data_replicate": s.dp_replicate,
                "data_shard": s.dp_shard,
                "sequence": s.cp,
                "tensor": s.tp,
            },
            "schedule": s.schedule,
            "recompute": s.recompute,
            "stages": [_stage(stage) for stage in layout_of(plan)],
            "training": plan.problem.workload.training,
        }
    )


def _stage(stage: StageLayout) -> dict[str, Any]:
    recomputed = stage.recompute.num_layers_per_chunk or (0,) * len(stage.chunks)
    return {
        "recompute": stage.recompute.policy,
        "chunks": [
            {
                "chunk": chunk.chunk,
                "first_layer": chunk.first_layer,
                "num_layers": chunk.num_layers,
                "recomputed_layers": layers,
                "embedding": chunk.has_embedding,
                "head": chunk.has_head,
            }
            for chunk, layers in zip(stage.chunks, recomputed, strict=True)
        ],
    }


def training_text(document: TrainingDocument) -> str:
    """The file."""
    return json.dumps(document.model_dump(mode="json"), indent=1) + "\n"


def read_training(text: str) -> TrainingDocument:
    """Parse the file.  Raises DocumentInvalid with every finding."""
    return document_of(TrainingDocument, text, TRAINING_FILE)


def read_layout(document: TrainingDocument, *, optimizer_offload: bool) -> Layout:
    """The stages that the document says."""
    return tuple(
        StageLayout(
            stage=index,
            chunks=tuple(
                ChunkPlan(
                    chunk=chunk.chunk,
                    first_layer=chunk.first_layer,
                    num_layers=chunk.num_layers,
                    has_embedding=chunk.embedding,
                    has_head=chunk.head,
                )
                for chunk in stage.chunks
            ),
            recompute=StageRecompute(
                policy=stage.recompute,
                num_layers_per_chunk=tuple(chunk.recomputed_layers for chunk in stage.chunks)
                if stage.recompute == "full"
                else (),
            ),
            offload=StageOffload(optimizer=optimizer_offload),
        )
        for index, stage in enumerate(document.stages)
    )
