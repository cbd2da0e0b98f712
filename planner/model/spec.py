"""The model specification, layer by layer, in the field's terms.

A ``ModelSpec`` holds numbers only.  Everything the planner needs (operators, parameters, activations) is derived
from it by ``planner.model.operators`` and ``planner.model.parameters``; importers (``hf_config``, ``megatron_args``,
``model_yaml``) produce it.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.channel_mixers import MlpSpec, MoeSpec
from planner.model.denoiser import DenoiserSpec, JointSpec
from planner.model.encoder import EncoderSpec
from planner.model.ends import AdapterSpec, EndsSpec
from planner.model.layer_parts import PartSpec
from planner.model.layer_rows import RowsSpec
from planner.model.mixers import TokenMixer
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.mixers.kinds import Modality, NormKind
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.mixers.softmax import AttentionSpec
from planner.model.mixers.tower_cross import TowerCrossSpec
from planner.model.residual import ResidualSpec
from planner.model.trace import TraceSpec
from profiles.document import Document

__all__ = [
    "AttentionSpec",
    "LayerRun",
    "LayerSpec",
    "MlpSpec",
    "Modality",
    "ModelSpec",
    "MoeSpec",
    "MtpSpec",
    "NormKind",
    "NormPlacement",
    "PartSpec",
    "PositionKind",
    "ResidualSpec",
    "TokenMixer",
    "Tower",
    "TowerRun",
    "TowerSpec",
    "VisionSpec",
]

NormPlacement = Literal["pre", "post_branch", "post_residual"]
PositionKind = Literal["rope", "learned", "alibi", "none"]
UNBOUNDED = 1 << 20
"""``max_sequence_length`` of a class that has no positions of its own; nothing is as long as it."""


class LayerSpec(Document):
    """One kind of layer: a token mixer, then an MLP or a mixture of experts; one of the two may be missing.

    ``num_norms`` counts hidden-wide norms in the layer (2 for pre-norm, 4 for gemma's sandwich, 1 for falcon-like
    parallel residuals).  ``norm_placement``: ``pre`` = before attention and MLP; ``post_branch`` = on their outputs,
    before the residual sum (olmo2); ``post_residual`` = after the sum (the first Transformer, opt-350m).  Four norms
    are always pre and post_branch together.
    """

    attention: TokenMixer = Field(description="the token mixer: attention, or another kind")
    beside: Mamba2Spec | None = Field(
        default=None,
        exclude_if=lambda mixer: mixer is None,
        description="a second mixer that reads the same norm and adds to the same sum (falcon_h1)",
    )
    cross: CrossAttentionSpec | None = Field(
        default=None,
        exclude_if=lambda cross: cross is None,
        description="attention to the encoder's output, after the token mixer; its norms count in num_norms",
    )
    joint: JointSpec | None = Field(
        default=None,
        exclude_if=lambda joint: joint is None,
        description="second weights for text tokens, which attend jointly with latent tokens",
    )
    adapter: AdapterSpec | None = Field(
        default=None,
        exclude_if=lambda adapter: adapter is None,
        description="bottlenecks behind the MLP, of which a token runs through one (xmod)",
    )
    mlp: MlpSpec | None = None
    moe: MoeSpec | None = None
    norm: NormKind = "rms"
    num_norms: int = Field(default=2, ge=0)
    norm_placement: NormPlacement = "pre"
    parallel_residual: bool = False
    experts_beside: bool = Field(
        default=False,
        exclude_if=lambda on: not on,
        description="experts beside an MLP, from the same input (longcat_flash, gemma4); else a layer has one of them",
    )
    reuses_weights: bool = Field(
        default=False, exclude_if=lambda on: not on, description="runs with the weights of an earlier layer"
    )
    parts: tuple[PartSpec, ...] = Field(
        default=(), exclude_if=lambda parts: not parts, description="norms, scales, gates and projections besides"
    )
    rows: RowsSpec | None = Field(
        default=None, exclude_if=lambda rows: rows is None, description="rows beside one a token; None = no others"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.experts_beside and (self.mlp is None or self.moe is None):
            raise ValueError("experts beside an mlp need both")
        if self.mlp is not None and self.moe is not None and not self.experts_beside:
            raise ValueError("a layer has an mlp or a moe, not both")
        if self.attention.kind == "none" and self.mlp is None and self.moe is None:
            raise ValueError("a layer without token mixer needs an mlp or a moe")
        return self


class LayerRun(Document):
    """``count`` consecutive layers of kind ``kind`` (an index into ``ModelSpec.layer_kinds``)."""

    kind: int = Field(ge=0)
    count: int = Field(gt=0)


class MtpSpec(Document):
    """Multi-token prediction modules after the last layer (arXiv 2412.19437, section 2.2).

    Each module: one transformer layer of ``kind``, a projection 2h -> h and three norms; embedding and output head
    are shared with the main model.
    """

    num_layers: int = Field(gt=0)
    kind: int = Field(ge=0)
    count_in_parameters: bool = Field(
        default=False, description="whether the reference parameter count (the HF class) holds these modules"
    )


class TowerRun(Document):
    """``count`` equal layers of a tower, over ``units_per_item`` patches or frames of one image or clip.

    ``layer.attention.sliding_window`` is the window that attention stays in, where there is one.
    """

    count: int = Field(gt=0)
    layer: LayerSpec
    hidden_size: int = Field(gt=0)
    units_per_item: int = Field(gt=0)
    rope: bool = Field(default=False, description="rotary positions")


class TowerSpec(Document):
    """A tower in front of the language model, of any modality: runs of layers, a front end and a projector.

    An *item* is one image of a vision tower, one clip of an audio tower.
    """

    modality: Modality
    runs: tuple[TowerRun, ...] = Field(min_length=1)
    tokens_per_item: int = Field(gt=0, description="tokens of the language model that stand for one item")
    extra_parameters: int = Field(ge=0, description="front end, positions, norms and the projector")
    ends_flops_per_item: int = Field(default=0, ge=0, description="forward FLOPs of front end and projector, one item")

    @property
    def called(self) -> str:
        """With its article, for sentences."""
        return "an audio tower" if self.modality == "audio" else f"a {self.modality} tower"


class VisionSpec(Document):
    """A vision tower in front of the language model: a ViT whose patches become ``tokens_per_image`` LLM tokens.

    The properties give it the form of a ``TowerSpec``.
    """

    hidden_size: int = Field(gt=0)
    num_layers: int = Field(ge=0)
    layer: LayerSpec
    rope: bool = Field(default=False, description="rotary positions inside the tower (qwen2_vl)")
    patches_per_image: int = Field(gt=0)
    tokens_per_image: int = Field(gt=0)
    extra_parameters: int = Field(ge=0, description="patch embedding, positions, norms and the projector")
    projector_flops_per_image: int = Field(
        default=0, ge=0, description="forward FLOPs of patch embedding and projector, one image"
    )
    num_windowed_layers: int = Field(default=0, ge=0, description="layers whose attention stays in a window")
    window_patches: int | None = Field(default=None, gt=0, description="patches of one attention window")

    @property
    def modality(self) -> Modality:
        """What the tower reads."""
        return "vision"

    @property
    def called(self) -> str:
        """With its article, for sentences."""
        return "a vision tower"

    @property
    def runs(self) -> tuple[TowerRun, ...]:
        """Its layers by kind: those that attend to the whole image, then those that attend in windows."""
        attention = self.layer.attention.model_copy(update={"sliding_window": self.window_patches})
        windowed = self.layer.model_copy(update={"attention": attention})
        kinds = (self.num_layers - self.num_windowed_layers, self.layer), (self.num_windowed_layers, windowed)
        return tuple(
            TowerRun(
                count=count,
                layer=layer,
                hidden_size=self.hidden_size,
                units_per_item=self.patches_per_image,
                rope=self.rope,
            )
            for count, layer in kinds
            if count
        )

    @property
    def tokens_per_item(self) -> int:
        """Tokens of the language model for one image."""
        return self.tokens_per_image

    @property
    def ends_flops_per_item(self) -> int:
        """Forward FLOPs of patch embedding and projector, one image."""
        return self.projector_flops_per_image


Tower = VisionSpec | TowerSpec


class ModelSpec(Document):
    """A language model (or a diffusion transformer): embedding, layers of few kinds in sequence, final norm, head."""

    schema_version: Literal[1] = 1
    name: str = Field(min_length=1)
    family: str = Field(min_length=1, description="HF model_type, or 'custom'")
    hidden_size: int = Field(gt=0)
    vocab_size: int = Field(ge=0, description="rows of the token table; 0 = none, which only a denoiser has")
    layer_kinds: tuple[LayerSpec, ...] = Field(min_length=1)
    layer_runs: tuple[LayerRun, ...] = Field(min_length=1)
    tie_embeddings: bool = False
    learned_positions: int = Field(default=0, ge=0, description="rows of a learned position table; 0 = rope or alibi")
    embedding_size: int | None = Field(
        default=None, gt=0, description="width of the token embedding when it differs from hidden_size (opt-350m)"
    )
    further_embedding_rows: int = Field(
        default=0, ge=0, exclude_if=lambda rows: rows == 0, description="rows of the token table that the head has not"
    )
    embedding_norm: bool = False
    final_norm: bool = True
    head_bias: bool = False
    max_sequence_length: int = Field(gt=0)
    mtp: MtpSpec | None = None
    vision: VisionSpec | None = None
    further_towers: tuple[TowerSpec, ...] = Field(
        default=(), exclude_if=lambda towers: not towers, description="towers beside the vision tower"
    )
    encoder: EncoderSpec | None = Field(
        default=None, exclude_if=lambda encoder: encoder is None, description="the encoder that stands before a decoder"
    )
    denoiser: DenoiserSpec | None = Field(
        default=None, exclude_if=lambda denoiser: denoiser is None, description="the ends of a diffusion transformer"
    )
    ends: EndsSpec | None = Field(
        default=None, exclude_if=lambda ends: ends is None, description="additions to the embedding and the head"
    )
    activation_function: str = "silu"
    position: PositionKind = "rope"
    rotary_base: float = Field(default=10000.0, gt=0)
    norm_epsilon: float = Field(default=1e-5, gt=0)
    residual: ResidualSpec | None = Field(
        default=None,
        exclude_if=lambda residual: residual is None,
        description="several residual streams (hyper-connections); None = one, plain",
    )
    entry_parts: tuple[PartSpec, ...] = Field(
        default=(), exclude_if=lambda parts: not parts, description="what runs once before the first layer"
    )
    exit_parts: tuple[PartSpec, ...] = Field(
        default=(), exclude_if=lambda parts: not parts, description="what runs once after the last layer"
    )
    traced: TraceSpec | None = Field(
        default=None,
        exclude_if=lambda trace: trace is None,
        description="how it was traced, where no table describes its family; None = from a table",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        last = len(self.layer_kinds) - 1
        if any(run.kind > last for run in self.layer_runs):
            raise ValueError(f"layer_runs name a kind above {last}, the last of layer_kinds")
        if self.mtp is not None and self.mtp.kind > last:
            raise ValueError(f"mtp.kind = {self.mtp.kind} is above {last}, the last of layer_kinds")
        modalities = [tower.modality for tower in self.towers]
        if len(set(modalities)) < len(modalities):
            raise ValueError("further_towers: one tower a modality")
        if (self.traced is not None) != all(kind.attention.kind == "traced" for kind in self.layer_kinds):
            raise ValueError("a traced model has traced layers only, and no other model has any")
        if (self.vocab_size == 0) != (self.denoiser is not None):
            raise ValueError(f"vocab_size = {self.vocab_size}: a denoiser has 0, every other model at least 1")
        if self.denoiser is None:
            self._check_encoder()
        elif self.encoder is not None or self.towers or self.mtp is not None:
            raise ValueError("a denoiser has no encoder, tower or multi-token prediction of its own")
        return self

    def _check_encoder(self) -> None:
        """The encoder's layers and kinds come first, and only decoder layers have cross-attention."""
        kinds, layers = (self.encoder.num_kinds, self.encoder.num_layers) if self.encoder else (0, 0)
        seen = self.layer_kind_sequence()
        if layers and (layers >= len(seen) or max(seen[:layers]) >= kinds or min(seen[layers:]) < kinds):
            raise ValueError(
                f"the first {layers} layers, of the first {kinds} kinds, must be the encoder's, others not"
            )
        for number, kind in enumerate(self.layer_kinds):
            if kind.joint is not None:
                raise ValueError("only a denoiser has second weights for text tokens")
            if (kind.cross is not None) != (layers > 0 and number >= kinds):
                raise ValueError("every decoder layer beside an encoder has cross-attention, and no other layer")

    @property
    def crossed_modality(self) -> Modality | None:
        """The modality of the tower to which layers of the decoder attend, if any do."""
        crossed = (kind.attention.modality for kind in self.layer_kinds if isinstance(kind.attention, TowerCrossSpec))
        return next(crossed, None)

    @property
    def position_limit(self) -> int | None:
        """Tokens for which the model has positions; None where a bias by distance or a state stands for them (T5)."""
        plain = any(
            isinstance(kind.attention, AttentionSpec) and kind.attention.position_bias is None
            for kind in self.layer_kinds
        )
        placed = plain or self.position != "none" or self.learned_positions > 0
        return self.max_sequence_length if placed or self.max_sequence_length != UNBOUNDED else None

    @property
    def towers(self) -> tuple[Tower, ...]:
        """Every tower in front of the language model."""
        return (() if self.vision is None else (self.vision,)) + self.further_towers

    @property
    def num_layers(self) -> int:
        """Transformer layers, without multi-token-prediction modules and vision tower."""
        return sum(run.count for run in self.layer_runs)

    @property
    def stream_size(self) -> int:
        """Width of what passes from one layer to the next: all residual streams."""
        return self.hidden_size * (self.residual.streams if self.residual else 1)

    @property
    def has_experts(self) -> bool:
        """Whether some layer is a mixture of experts."""
        return any(kind.moe is not None for kind in self.layer_kinds)

    @property
    def num_experts(self) -> int:
        """Routed experts of the layer that has most of them; 0 = no mixture of experts."""
        return max((kind.moe.num_experts for kind in self.layer_kinds if kind.moe is not None), default=0)

    def layer_kind_sequence(self) -> tuple[int, ...]:
        """Kind index of every layer in order, length ``num_layers``."""
        return tuple(run.kind for run in self.layer_runs for _ in range(run.count))
