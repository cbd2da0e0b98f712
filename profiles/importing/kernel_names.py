"""The kind of operator that a device kernel belongs to, judged by its name.

``kernel_class`` answers with an operator class of ``profiles.observations.records``, or with ``collective`` for a
communication kernel, ``other`` for reductions, sorts and index shuffling, and ``kernel`` where the name says nothing.
A name never tells a shape: a kernel known by name only counts towards coverage and is no entry to look up.

The rules are asked in order; the first that fits wins.  The order matters because demangled names carry their template
arguments: flash attention mentions ``cutlass``, a matmul may end in ``relu``, an element-wise copy names both.
Families: cuBLAS / cuBLASLt (``ampere_*gemm``, ``nvjet_*``, ``cutlass*``), rocBLAS / hipBLASLt (``Cijk_*``), PyTorch
ATen, Apex and Transformer Engine, Triton and Inductor, flash-attn, AOTriton, Composable Kernel, CANN operator types.
"""

from __future__ import annotations

import re
from functools import lru_cache

_RULES: tuple[tuple[str, str], ...] = (
    (
        "collective",
        r"nccl|rccl|mscclpp?|hccl|hcom_|nvshmem|rocshmem|deep_?ep|cross_device_reduce|all_?reduce|all_?gather"
        r"|reduce_?scatter|all_?to_?all|all-(reduce|gather|to-all)|reduce-scatter|collective-permute|multimem_",
    ),
    (
        "decode_attention",
        r"paged_?attention|paged_?attn|decode_?attention|decode_?attn|kvcache|flash_?decod|mla_decode",
    ),
    (
        "attention",
        r"flash|fmha|attention|attn|(?:\b|_)mha(?:_|\b)|sdpa|mem_eff|^bwd_(kernel_(fuse|dk_dv|dq)|preprocess)|promptflash|ringmla",
    ),
    ("cross_entropy", r"cross_?entropy|nll_?loss|softmax_cross"),
    ("router", r"topk_?(softmax|gating)|moe_?(align|gating|router|topk)|router|gating"),
    (
        "grouped_matmul",
        r"group(ed)?_?(gemm|mat_?mul)|ptr_?array.*gemm|gemm.*ptr_?array|moe_?(gemm|matmul)|fused_moe_kernel|gmm_",
    ),
    ("optimizer", r"adam|lamb_|_lamb|fused_?sgd|multi_tensor_sgd|adagrad|lion_|muon|distributed_?optimizer"),
    (
        "norm",
        r"(layer|rms|batch|group|instance)_?norm|ln_(fwd|bwd)|rmsnorm|gammabeta|\bbn_(fw|bw)|(fwd|bwd)_tuned_kernel.*norm",
    ),
    ("dropout", r"dropout|masked_scale_kernel"),
    ("convolution", r"conv(?!ert)(?!_?1d_causal)|fprop|winograd|im2col|col2im|\bwgrad\b|\bdgrad\b"),
    (
        "matmul",
        r"gemm|gemv|nvjet|cijk_|mat_?mul|xmma|split_?k_?reduce|cutlass3x|cutlass_\d|cutlass::(device_)?kernel|\bbmm"
        r"|[shi](884|1688|16816|16832)|cublas|tensile|deep_gemm|wvsplitk|\baddmm|_mm_",
    ),
    ("rotary", r"rotary|\brope|_rope|rope_"),
    ("softmax", r"softmax"),
    ("activation", r"gelu|silu|swiglu|geglu|relu|swish|act_and_mul|sigmoid"),
    ("embedding", r"embedding|vectorized_gather_kernel|indexselect|index_select|krn_partial|sum_and_scatter|gatherv2"),
    (
        "copy",
        r"memcpy|memset|copybuffer|fillbuffer|catarraybatchedcopy|direct_copy|_copy_kernel|copy_kernel|copy_device_to"
        r"|transpose|transdata|\bcast\b|^cast|^concat|tensormove|^copy|slice",
    ),
    (
        "other",
        r"reduce_?kernel|reducesum|reducemean|triton_(red|per)_|sort|scan|scatter|index|cumsum|arange|^range$|lpnorm",
    ),
    (
        "elementwise",
        r"elementwise|pointwise|triton_poi|multi_tensor_apply|foreach|binaryfunctor|unaryfunctor|fillfunctor"
        r"|^(aclnn)?(in?place)?(add|adds|mul|muls|sub|div|realdiv|pow|sqrt|rsqrt|neg|exp|log|axpy|square|maximum|minimum"
        r"|equal|less|greater|logical\w*|select\w*|where|fill|zeroslike|oneslike|abs|clip\w*)(v\d)?(_.*)?$",
    ),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _RULES)
_LONGEST = 4096

_COLLECTIVES: tuple[tuple[str, str], ...] = (
    ("all_reduce", r"all[_-]?reduce"),
    ("reduce_scatter", r"reduce[_-]?scatter"),
    ("all_gather", r"all[_-]?gather"),
    ("all_to_all", r"all[_-]?to[_-]?all"),
    ("broadcast", r"broad[_-]?cast"),
    ("send_recv", r"send|recv|receive|collective-permute|batchsendrecv|p2p"),
    ("reduce", r"reduce"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("barrier", r"barrier"),
)
_COLLECTIVES_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _COLLECTIVES)


@lru_cache(maxsize=16384)
def kernel_class(name: str) -> str:
    """Operator class of a kernel; ``kernel`` where its name does not say."""
    plain = name[:_LONGEST].casefold().strip()
    return next((found for found, pattern in _COMPILED if pattern.search(plain)), "kernel")


def collective_operation(name: str) -> str:
    """Which collective a communication kernel or call performs: ``all_reduce``, ...; ``unknown`` if it does not say."""
    plain = name[:_LONGEST].casefold()
    return next((found for found, pattern in _COLLECTIVES_COMPILED if pattern.search(plain)), "unknown")
