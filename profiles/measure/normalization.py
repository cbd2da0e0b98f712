"""Times of RMS and layer norm, forward and backward: ``torch.nn.functional``, one learned vector (or two)."""

from __future__ import annotations

from profiles.measure.case import Case, Prepared
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import OperatorKind
from profiles.measure.pointwise_pass import pass_cases, prepare_pass

EPSILON = 1e-5


def prepare_norm(case: Case, device: MeasuredDevice) -> Prepared:
    """``name`` is rms_norm or layer_norm."""
    functional = import_torch().nn.functional
    width = case.shape["hidden_size"]
    rows = device.normal((case.shape["num_tokens"], width), case.dtype)
    weight, bias = device.normal((width,), case.dtype), device.normal((width,), case.dtype)
    if case.name == "rms_norm":
        return prepare_pass(case, device, lambda x, w: functional.rms_norm(x, (width,), w, EPSILON), (rows, weight))
    return prepare_pass(
        case, device, lambda x, w, b: functional.layer_norm(x, (width,), w, b, EPSILON), (rows, weight, bias)
    )


NORM = OperatorKind(pass_cases("norm", "hidden_size", forward=2, backward=4), prepare_norm, ("bf16", "fp16", "fp32"))
