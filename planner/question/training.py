"""How a model is trained: which weights learn, by which loss, and how long the sequences really are.

``pretrain`` and ``full`` learn every weight.  ``lora`` freezes the base and learns low-rank adapters beside chosen
matrices (Hu et al., arXiv 2106.09685); ``qlora`` also stores the frozen matrices of the layers in few bits (Dettmers et
al., arXiv 2305.14314) and makes 16-bit copies of them before each product.  Preference training (``dpo``: Rafailov et
al., arXiv 2305.18290; ``orpo``: arXiv 2403.07691; ``reward``: arXiv 2203.02155) runs a chosen and a rejected sequence
for each sample; DPO also runs a frozen reference model forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from planner.model.spec import Modality
from profiles.document import Document

TrainingKind = Literal["pretrain", "full", "lora", "qlora"]
TrainingTask = Literal["language_model", "dpo", "orpo", "reward"]
ReferenceModel = Literal["resident", "offloaded", "shared", "precomputed"]
AdapterTarget = Literal["q", "k", "v", "o", "gate", "up", "down"]
BaseStorage = Literal["bf16", "int8", "nf4", "gptq"]

ALL_LINEAR = "all-linear"
EVERY_TOWER: tuple[Modality, ...] = get_args(Modality)
EVERY_TARGET: tuple[AdapterTarget, ...] = ("q", "k", "v", "o", "gate", "up", "down")
STORED_BYTES: dict[str, float] = {
    "bf16": 2.0,
    "int8": 1.0,
    "nf4": 0.5 + 4.0 / 64,
    "nf4-dq": 0.5 + 1.0 / 64 + 4.0 / (64 * 256),
    "gptq": 0.5 + 2.5 / 128,
}
"""Bytes of a frozen weight of a layer.  nf4: 4 bits and an fp32 scale for 64, or (``-dq``) an 8-bit scale for 64 and an
fp32 one for 256 of these (arXiv 2305.14314, section 3); gptq: 4 bits, an fp16 scale and a 4-bit zero for 128."""


class Training(Document):
    """What learns, and by which loss."""

    kind: TrainingKind = Field(
        default="pretrain",
        description="pretrain, full: every weight learns; lora: adapters on a frozen 16-bit base; qlora: adapters on a"
        " quantised base",
    )
    rank: int = Field(default=16, ge=1, le=4096, description="rank of the adapters")
    targets: tuple[AdapterTarget, ...] = Field(
        default=EVERY_TARGET,
        min_length=1,
        description="matrices with an adapter: q, k, v, o, gate, up, down; all-linear = all of them."
        " Routed experts have none, shared experts are gate, up, down",
    )
    dora: bool = Field(default=False, description="a learned magnitude for each output beside the adapters (DoRA)")
    base: BaseStorage | None = Field(
        default=None, description="how frozen matrices of layers are stored; absent = bf16 for lora, nf4 for qlora"
    )
    double_quantization: bool = Field(default=True, description="nf4: scales are quantised too")
    ends: bool = Field(
        default=False, description="adapters: embedding and output layer learn too (modules_to_save of PEFT)"
    )
    task: TrainingTask = Field(
        default="language_model",
        description="dpo, orpo, reward: a chosen and a rejected sequence for each sample",
    )
    reference: ReferenceModel | None = Field(
        default=None,
        description="dpo: where the reference model is; shared = the base without its adapters, precomputed = its"
        " log-probabilities are in the data; absent = shared with adapters, resident without",
    )
    frozen_towers: tuple[Modality, ...] = Field(
        default=(),
        exclude_if=lambda towers: not towers,
        description="towers in front of the language model that do not learn, projectors among them: vision, audio; all"
        " = every one.  With adapters every tower is frozen",
    )

    @model_validator(mode="before")
    @classmethod
    def _words(cls, data: Any) -> Any:
        """``lora`` alone is a kind; ``all-linear`` and ``q,v`` are lists of targets, ``all`` is every tower."""
        if isinstance(data, str):
            return {"kind": data}
        lists = ("targets", ALL_LINEAR, EVERY_TARGET), ("frozen_towers", "all", EVERY_TOWER)
        for key, whole, every in lists if isinstance(data, Mapping) else ():
            if isinstance(data.get(key), str):
                said = str(data[key])
                data = {**data, key: every if said == whole else tuple(name.strip() for name in said.split(","))}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.targets)) < len(self.targets):
            raise ValueError("targets: each matrix once")
        if len(set(self.frozen_towers)) < len(self.frozen_towers):
            raise ValueError("frozen_towers: each tower once")
        if self.base is not None and not self.adapters:
            raise ValueError(f"base is about frozen weights: {self.kind} has none; use kind lora or qlora")
        if self.kind == "lora" and self.stored != "bf16":
            raise ValueError(f"lora keeps its base in bf16; for base {self.base} use kind qlora")
        if self.kind == "qlora" and self.stored == "bf16":
            raise ValueError("qlora stores its base in int8, nf4 or gptq; for bf16 use kind lora")
        if self.dora and not self.adapters:
            raise ValueError("dora is a form of adapters: use kind lora or qlora")
        if self.ends and not self.adapters:
            raise ValueError(f"ends is about adapters: with {self.kind} embedding and output layer learn anyway")
        if self.frozen_towers and self.adapters:
            raise ValueError(f"frozen_towers is for pretrain and full: with {self.kind} every tower is frozen anyway")
        if self.reference is not None and self.task != "dpo":
            raise ValueError(f"only dpo has a reference model, not {self.task}")
        if self.reference == "shared" and not self.adapters:
            raise ValueError("the reference is shared with the base of adapters; without them use resident")
        return self

    @property
    def adapters(self) -> bool:
        """Whether only adapters learn."""
        return self.kind in ("lora", "qlora")

    @property
    def holds_frozen(self) -> bool:
        """Whether some weights may be frozen."""
        return self.adapters or bool(self.frozen_towers)

    def freezes(self, modality: Modality) -> bool:
        """Whether the tower of a modality only runs forward: adapters stand in the language model alone."""
        return self.adapters or modality in self.frozen_towers

    @property
    def stored(self) -> BaseStorage:
        """How frozen matrices of layers are stored."""
        return self.base or ("nf4" if self.kind == "qlora" else "bf16")

    @property
    def stored_bytes(self) -> float:
        """Bytes of a frozen weight of a layer's matrix."""
        doubly = self.stored == "nf4" and self.double_quantization
        return STORED_BYTES["nf4-dq" if doubly else self.stored]

    @property
    def sequences_per_sample(self) -> int:
        """Two where a sample is a pair of answers."""
        return 1 if self.task == "language_model" else 2

    @property
    def reference_at(self) -> ReferenceModel | None:
        """Where the reference model is; None where the loss has none."""
        if self.task != "dpo":
            return None
        return self.reference or ("shared" if self.adapters else "resident")

    @property
    def runs_reference(self) -> bool:
        """Whether each micro-batch passes forward through a reference model too."""
        return self.reference_at in ("resident", "offloaded", "shared")

    def words(self) -> str:
        """One line for people."""
        parts = [{"language_model": ""}.get(self.task, self.task), self.kind]
        if self.adapters:
            named = ALL_LINEAR if self.targets == EVERY_TARGET else ",".join(self.targets)
            parts += [f"rank {self.rank} on {named}", "and the ends" if self.ends else ""]
            parts += ["(DoRA)" if self.dora else "", f"base {self.stored}"]
        if self.reference_at is not None:
            parts.append(f"reference {self.reference_at}")
        if self.frozen_towers:
            parts.append(f"frozen towers {'+'.join(self.frozen_towers)}")
        return " ".join(part for part in parts if part)


PRETRAIN = Training()
