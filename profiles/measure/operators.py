"""The kinds of operators that are measured: one entry a kind; its module says how."""

from __future__ import annotations

from profiles.errors import NotFound
from profiles.measure.activation import ACTIVATION
from profiles.measure.attention import ATTENTION
from profiles.measure.copies import COPY
from profiles.measure.embedding_loss import CROSS_ENTROPY, EMBEDDING
from profiles.measure.grouped_matmul import GROUPED_MATMUL
from profiles.measure.kind import OperatorKind
from profiles.measure.matmul import MATMUL
from profiles.measure.normalization import NORM
from profiles.measure.optimizer import OPTIMIZER
from profiles.measure.permutation import PERMUTE
from profiles.measure.router import ROUTER
from profiles.spelling import nearest_name

KINDS: dict[str, OperatorKind] = {
    "matmul": MATMUL,
    "attention": ATTENTION,
    "grouped_matmul": GROUPED_MATMUL,
    "router": ROUTER,
    "permute": PERMUTE,
    "norm": NORM,
    "activation": ACTIVATION,
    "embedding": EMBEDDING,
    "cross_entropy": CROSS_ENTROPY,
    "optimizer": OPTIMIZER,
    "copy": COPY,
}
COMMUNICATION = ("collectives", "overlap")
"""What only several ranks can measure."""


def check_kinds(names: tuple[str, ...], where: str) -> None:
    """Raises NotFound for a name that is no kind, with the nearest one."""
    known = [*KINDS, *COMMUNICATION]
    for name in names:
        if name not in known:
            near = nearest_name(name, known)
            hint = f"did you mean '{near}'?" if near else "known: " + ", ".join(known)
            raise NotFound(f"'{name}' is nothing that can be measured", where=where, hint=hint)
