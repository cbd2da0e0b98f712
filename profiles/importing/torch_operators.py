"""The operator class of PyTorch names such as ``aten::addmm``, and the arguments that hold the sizes.

A rule says the class, whether the name is the backward half, which arguments hold the operands, and whether the name
only counts where nothing inside it is recognised (``leaf_only``: ``aten::linear`` runs ``aten::addmm``, whose
arguments are the product itself).  Argument positions follow the operators' schemas.
Source: pytorch/pytorch aten/src/ATen/native/native_functions.yaml; flash-attn's registered operators.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """How to read one operator: ``first`` = position of its first operand, ``causal`` = position of that switch."""

    operator: str
    layout: str = "elements"
    first: int = 0
    causal: int | None = None
    backward: bool = False
    leaf_only: bool = False


_MATMULS = {
    "mm": OperatorRule("matmul", "mm"),
    "addmm": OperatorRule("matmul", "mm", 1),
    "_addmm_activation": OperatorRule("matmul", "mm", 1),
    "_int_mm": OperatorRule("matmul", "mm"),
    "_scaled_mm": OperatorRule("matmul", "mm"),
    "bmm": OperatorRule("matmul", "bmm"),
    "baddbmm": OperatorRule("matmul", "bmm", 1),
    "addbmm": OperatorRule("matmul", "bmm", 1),
    "mv": OperatorRule("matmul", "mv"),
    "addmv": OperatorRule("matmul", "mv", 1),
    "linear": OperatorRule("matmul", "linear", leaf_only=True),
    "matmul": OperatorRule("matmul", "matmul", leaf_only=True),
    "mkldnn_linear": OperatorRule("matmul", "linear", leaf_only=True),
    "_linear_pointwise": OperatorRule("matmul", "linear", leaf_only=True),
    "_grouped_mm": OperatorRule("grouped_matmul", "grouped"),
    "_scaled_grouped_mm": OperatorRule("grouped_matmul", "grouped"),
}
_ATTENTION = {
    "scaled_dot_product_attention": OperatorRule("attention", "bhsd", 0, 5),
    "_scaled_dot_product_attention_math": OperatorRule("attention", "bhsd", 0, 5),
    "_scaled_dot_product_flash_attention": OperatorRule("attention", "bhsd", 0, 4),
    "_scaled_dot_product_flash_attention_for_cpu": OperatorRule("attention", "bhsd", 0, 4),
    "_scaled_dot_product_efficient_attention": OperatorRule("attention", "bhsd", 0, 6),
    "_scaled_dot_product_cudnn_attention": OperatorRule("attention", "bhsd", 0, 6),
    "_scaled_dot_product_fused_attention_overrideable": OperatorRule("attention", "bhsd", 0, 5),
    "_flash_attention_forward": OperatorRule("attention", "bshd", 0, 8),
    "_efficient_attention_forward": OperatorRule("attention", "bshd", 0),
    "_scaled_dot_product_flash_attention_backward": OperatorRule("attention", "bhsd", 1, 11, True),
    "_scaled_dot_product_flash_attention_for_cpu_backward": OperatorRule("attention", "bhsd", 1, 7, True),
    "_scaled_dot_product_efficient_attention_backward": OperatorRule("attention", "bhsd", 1, 11, True),
    "_scaled_dot_product_cudnn_attention_backward": OperatorRule("attention", "bhsd", 1, 14, True),
    "_scaled_dot_product_fused_attention_overrideable_backward": OperatorRule("attention", "bhsd", 1, None, True),
    "_flash_attention_backward": OperatorRule("attention", "bshd", 1, 11, True),
    "_efficient_attention_backward": OperatorRule("attention", "bshd", 1, None, True),
}
_NORMS = {
    **{
        name: OperatorRule("norm", "rows")
        for name in (
            "layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", "fused_layer_norm_affine",
            "fused_rms_norm_affine",
        )
    },
    **{
        name: OperatorRule("norm", "rows", 1, None, True)
        for name in ("native_layer_norm_backward", "_fused_rms_norm_backward")
    },
    **{
        name: OperatorRule("norm", "elements")
        for name in (
            "batch_norm", "_batch_norm_impl_index", "cudnn_batch_norm", "miopen_batch_norm", "native_batch_norm",
            "group_norm", "native_group_norm", "instance_norm",
        )
    },
    **{
        name: OperatorRule("norm", "elements", 0, None, True)
        for name in (
            "cudnn_batch_norm_backward", "miopen_batch_norm_backward", "native_batch_norm_backward",
            "native_group_norm_backward",
        )
    },
}  # fmt: skip
_LOSSES = {
    "cross_entropy_loss": OperatorRule("cross_entropy", "classes"),
    "log_softmax": OperatorRule("cross_entropy", "classes"),
    "_log_softmax": OperatorRule("cross_entropy", "classes"),
    "nll_loss": OperatorRule("cross_entropy", "classes"),
    "nll_loss_nd": OperatorRule("cross_entropy", "classes"),
    "nll_loss_forward": OperatorRule("cross_entropy", "classes"),
    "_log_softmax_backward_data": OperatorRule("cross_entropy", "classes", 0, None, True),
    "nll_loss_backward": OperatorRule("cross_entropy", "classes", 1, None, True),
}
_ACTIVATIONS = ("gelu", "silu", "relu", "leaky_relu", "glu", "hardswish", "hardtanh", "elu", "mish", "relu6", "sigmoid",
                "softplus", "threshold", "prelu", "log_sigmoid", "tanh", "hardsigmoid")  # fmt: skip
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution", "miopen_convolution",
                 "conv_transpose2d", "mkldnn_convolution", "conv_depthwise2d", "_conv_depthwise2d")  # fmt: skip
_POINT_WISE = """
add sub rsub mul div neg abs pow sqrt rsqrt reciprocal exp exp2 log log2 sin cos clamp clamp_min clamp_max
where masked_fill fill zero copy clone contiguous to _to_copy eq ne lt le gt ge maximum minimum logical_and
logical_or logical_not bitwise_and bitwise_or bitwise_not addcmul addcdiv lerp erf round floor ceil sign
square remainder fmod floor_divide true_divide isnan isinf isfinite nan_to_num expand_as triu tril ones_like
zeros_like full_like cat stack mul_out uniform normal bernoulli fill_diagonal sgn
"""
_ELEMENTWISE = frozenset(_POINT_WISE.split())
_NO_WORK_NAMES = """empty empty_strided empty_like view _unsafe_view reshape t transpose as_strided slice
select expand permute detach unsqueeze squeeze narrow split split_with_sizes chunk alias lift_fresh resize unbind item
_local_scalar_dense is_nonzero result_type set view_as movedim swapaxes numpy_T _reshape_alias size is_contiguous"""
_NO_WORK = frozenset(_NO_WORK_NAMES.split())
_PATTERNS: tuple[tuple[re.Pattern[str], OperatorRule], ...] = (
    (re.compile(r"^flash_attn\w*::\w*varlen\w*backward|^flash_attn\w*::\w*varlen\w*bwd"),
     OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^flash_attn\w*::.*(backward|bwd)"), OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^flash_attn\w*::"), OperatorRule("attention", "bshd")),
    (re.compile(r"^(xformers|xformers_flash)\w*::.*(backward|bwd)"), OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^(xformers|xformers_flash)\w*::.*(attention|flash_fwd)"), OperatorRule("attention", "bshd")),
    (re.compile(r"^\w*(Flash|Fused|DotProduct)\w*Att\w*Backward\w*$"),
     OperatorRule("attention", "none", backward=True)),
    (re.compile(r"^\w*(FlashAttn|FusedAttn)\w*Func\w*$"), OperatorRule("attention", "none")),
)  # fmt: skip


@lru_cache(maxsize=8192)
def operator_rule(name: str) -> OperatorRule | None:
    """The rule of one operator by the name that the profiler gives it; None where the name is not a known operator."""
    space, _, plain = name.rpartition("::")
    if space not in ("aten", ""):
        return _by_pattern(name)
    found = _exact(plain) if space == "aten" else None
    return found or _by_pattern(name)


@lru_cache(maxsize=8192)
def point_wise(name: str) -> bool:
    """Whether an operator without a rule works element by element."""
    plain = name.rpartition("::")[2]
    return plain.removeprefix("_foreach_").rstrip("_").removesuffix(".out") in _ELEMENTWISE


@lru_cache(maxsize=8192)
def moves_no_data(name: str) -> bool:
    """Whether an operator only makes a view, allocates, or reads one value: on a CPU its time is that of the call."""
    return name.rpartition("::")[2].rstrip("_") in _NO_WORK


def _exact(plain: str) -> OperatorRule | None:
    for table in (_MATMULS, _ATTENTION, _NORMS, _LOSSES):
        if plain in table:
            return table[plain]
    bare = plain.rstrip("_")
    if bare in _ACTIVATIONS:
        return OperatorRule("activation")
    if bare.endswith("_backward") and bare.removesuffix("_backward") in _ACTIVATIONS:
        return OperatorRule("activation", backward=True)
    if bare in _CONVOLUTIONS:
        return OperatorRule("convolution", "convolution")
    if bare == "convolution_backward":
        return OperatorRule("convolution", "convolution", 1, None, True)
    return _EXACT_OTHERS.get(bare)


_EXACT_OTHERS = {
    "embedding": OperatorRule("embedding", "embedding"),
    "embedding_bag": OperatorRule("embedding", "embedding"),
    "_embedding_bag": OperatorRule("embedding", "embedding"),
    "embedding_dense_backward": OperatorRule("embedding", "embedding_backward", 0, None, True),
    "embedding_backward": OperatorRule("embedding", "embedding_backward", 0, None, True),
    "softmax": OperatorRule("softmax", "rows"),
    "_softmax": OperatorRule("softmax", "rows"),
    "_softmax_backward_data": OperatorRule("softmax", "rows", 0, None, True),
    "_safe_softmax": OperatorRule("softmax", "rows"),
    "dropout": OperatorRule("dropout"),
    "native_dropout": OperatorRule("dropout"),
    "_fused_dropout": OperatorRule("dropout"),
    "native_dropout_backward": OperatorRule("dropout", backward=True),
    "_fused_adam": OperatorRule("optimizer", "list"),
    "_fused_adamw": OperatorRule("optimizer", "list"),
    "_fused_sgd": OperatorRule("optimizer", "list"),
    "_fused_adagrad": OperatorRule("optimizer", "list"),
}


def _by_pattern(name: str) -> OperatorRule | None:
    return next((rule for pattern, rule in _PATTERNS if pattern.search(name)), None)
