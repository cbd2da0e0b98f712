"""The optimizers that a workload may name, as data: what each keeps and moves for a parameter.

A parameter belongs to one of three groups.  *Matrices* are the weights of matrix products inside layers; *tables* are
the token table and the head; *vectors* are norms, biases and what else has no two dimensions.  Several optimizers treat
the groups differently: Muon orthogonalizes matrices and leaves the rest to Adam, 8-bit Adam keeps small tensors wide,
Adafactor keeps one number a row and one a column of whatever has both.

What a back-end can run is a rule of its own (``planner.backends``); how its data parallelism splits the states is
``planner.predict.memory.states``, their seconds ``planner.predict.cost.data_parallel``, the matrix products of Muon
``planner.predict.cost.newton_schulz``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

OptimizerName = Literal[
    "adam", "adam_bf16_states", "sgd", "muon", "adam_8bit", "adafactor", "lion", "adam_precision_aware"
]

BLOCK_ELEMENTS = 256
"""Elements of an 8-bit state that share one fp32 scale (torchao 0.18.0 optim/adam.py, block_size of Adam8bit;
bitsandbytes 0.48 optim/optimizer.py, blocks of 256)."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer: bytes of moments a parameter by its group, and what an update moves beside its states."""

    name: OptimizerName
    title: str
    matrix_bytes: float
    """Moments of a parameter of a matrix."""
    table_bytes: float
    """Of the token table and of the head."""
    vector_bytes: float
    """Of norms and biases."""
    source: str
    factored: bool = False
    """Whether matrices and tables keep 4 bytes for each row and each column instead."""
    orthogonalizes: bool = False
    """Whether matrices are orthogonalized by Newton-Schulz iterations, which take whole matrices."""
    further_bytes: float = 0.0
    """Bytes a parameter that an update moves beyond reading and writing states, reading the gradient and writing the
    16-bit weight once each."""

    @property
    def uniform(self) -> bool:
        """Whether every parameter keeps the same."""
        return not self.factored and self.matrix_bytes == self.table_bytes == self.vector_bytes

    @property
    def widest_bytes(self) -> float:
        """Moments of the parameter that keeps most."""
        return max(self.matrix_bytes, self.table_bytes, self.vector_bytes)


EIGHT_BIT_BYTES = 2.0 * (1.0 + 4.0 / BLOCK_ELEMENTS)
"""Two moments of 8 bit with their scales."""

_ALL = (
    Optimizer(
        "adam", "Adam, fp32 moments", 8.0, 8.0, 8.0,
        "Kingma and Ba, arXiv 1412.6980; torch 2.13.0 optim/adamw.py",
    ),
    Optimizer(
        "adam_bf16_states", "Adam, bf16 moments", 4.0, 4.0, 4.0,
        "megatron-core 0.19.2 core/optimizer/optimizer_config.py:187; torchtitan 0.3.0 components/optimizer/"
        "optimizer.py:121",
    ),
    Optimizer("sgd", "SGD with momentum", 4.0, 4.0, 4.0, "torch 2.13.0 optim/sgd.py"),
    Optimizer(
        "muon", "Muon, Adam for tables and vectors", 4.0, 8.0, 8.0,
        "Jordan et al., kellerjordan.github.io/posts/muon; megatron-core 0.19.2 core/optimizer/emerging_optimizers.py;"
        " deepspeed 0.19.8 runtime/zero/muon",
        orthogonalizes=True,
        # fp32 update written (4), cast to 16 bit (4 + 2), its norm (2), divided (2 + 2), applied (2).
        further_bytes=18.0,
    ),
    Optimizer(
        "adam_8bit", "Adam, 8-bit moments with a scale a block", EIGHT_BIT_BYTES, EIGHT_BIT_BYTES, 8.0,
        "Dettmers et al., arXiv 2110.02861; torchao 0.18.0 optim/adam.py (tensors below 4,096 elements stay fp32)",
    ),
    Optimizer(
        "adafactor", "Adafactor, row and column statistics", 0.0, 0.0, 4.0,
        "Shazeer and Stern, arXiv 1804.04235; torch 2.13.0 optim/_adafactor.py",
        factored=True,
        # Unfused: norms by row, by column and of the weight (4 each), outer product (4), three passes over it (8 each),
        # times the gradient (12), its norm (4), subtracted with the weight read and written (4), decay (8): 68.
        further_bytes=68.0,
    ),
    Optimizer(
        "adam_precision_aware", "Adam, each state in a number format of its own", 8.0, 8.0, 8.0,
        "megatron-core 0.19.2 training/arguments.py:3499-3519 (--use-precision-aware-optimizer); the formats are the"
        " workload's optimizer_states",
    ),
    Optimizer(
        "lion", "Lion, one momentum", 4.0, 4.0, 4.0,
        "Chen et al., arXiv 2302.06675; megatron-core 0.19.2 training/arguments.py:2777; deepspeed 0.19.8 ops/lion",
    ),
)  # fmt: skip
OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType({each.name: each for each in _ALL})
"""Every optimizer by its name."""
