"""Times of the two ends of a model: token embedding, and cross-entropy on the logits in fp32.

Cross-entropy includes the cast of the logits to fp32, as a training step does it.  The embedding's backward pass makes
the dense gradient of the whole table.
"""

from __future__ import annotations

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.measure.pointwise_pass import prepare_pass
from profiles.observations.records import Phase


def embedding_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Look-up, and the scattered gradient."""
    sizes, width = wanted.sizes, wanted.sizes["hidden_size"] * DTYPE_BYTES[dtype]
    table, rows = sizes["vocab_size"] * width, sizes["num_tokens"] * width
    found: list[tuple[Phase, int]] = [("forward", table + rows), ("backward", 2 * table + 2 * rows)]
    return [
        # The gradient's kernel asks the device for a count on the way, which a capture forbids.
        Case("embedding", "embedding", phase, dtype, dict(sizes), size, wanted.value, graph=phase == "forward")
        for phase, size in found
    ]


def prepare_embedding(case: Case, device: MeasuredDevice) -> Prepared:
    """A table and random token numbers."""
    functional = import_torch().nn.functional
    table = device.normal((case.shape["vocab_size"], case.shape["hidden_size"]), case.dtype)
    tokens = _random_tokens(case, device)
    return prepare_pass(case, device, lambda weight: functional.embedding(tokens, weight), (table,))


def cross_entropy_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Loss of all tokens, and the gradient of the logits."""
    elements = wanted.sizes["num_tokens"] * wanted.sizes["vocab_size"]
    size = elements * (DTYPE_BYTES[dtype] + 8)
    found: list[tuple[Phase, int]] = [("forward", size), ("backward", 2 * size)]
    return [
        Case("cross_entropy", "cross_entropy", phase, dtype, dict(wanted.sizes), memory, wanted.value)
        for phase, memory in found
    ]


def prepare_cross_entropy(case: Case, device: MeasuredDevice) -> Prepared:
    """Random logits and targets."""
    functional = import_torch().nn.functional
    logits = device.normal((case.shape["num_tokens"], case.shape["vocab_size"]), case.dtype)
    targets = _random_tokens(case, device)
    detail = {"implementation": "eager, cast to fp32, mean over tokens"}
    return prepare_pass(case, device, lambda x: functional.cross_entropy(x.float(), targets), (logits,), dict(detail))


def _random_tokens(case: Case, device: MeasuredDevice) -> object:
    return import_torch().randint(case.shape["vocab_size"], (case.shape["num_tokens"],), device=device.device)


EMBEDDING = OperatorKind(embedding_cases, prepare_embedding, ("bf16", "fp16", "fp32"))
CROSS_ENTROPY = OperatorKind(cross_entropy_cases, prepare_cross_entropy, ("bf16", "fp16", "fp32"))
