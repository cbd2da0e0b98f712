"""The behaviour of layers of Hugging Face transformers, whoever trains them."""

from __future__ import annotations

from planner.backends.pytorch_fsdp.physics import EAGER
from planner.predict.physics.host import EAGER_LAUNCH_S
from planner.predict.physics.physics import Physics

TRANSFORMERS = Physics(
    name="transformers",
    summary="Layers of Hugging Face transformers, eager, under any data parallelism",
    attention="flash2",
    unfused=EAGER,
    launch_s=EAGER_LAUNCH_S,
    eager_pointwise=True,
    keeps_gate_output=True,
    norm_copies=2.0,
    reduces_each_column=True,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
)
"""transformers 5.23.0 with attn_implementation "sdpa", which our scripts ask for.  RMSNorm computes in fp32 and keeps
that copy and the normalized 16-bit input (models/llama/modeling_llama.py, LlamaRMSNorm); gate, product and sum are
kernels of their own (LlamaMLP).  What one Llama layer keeps was counted on a CPU (torch 2.13.0, saved_tensors_hooks;
hidden 512, width 1536, 8 and 4 heads, 2 x 256 tokens): 23.29 x 16-bit hidden states, of which these traits give 23.00
(the rest: rotary tables, statistics).  The loss turns logits to fp32 and runs PyTorch's cross-entropy
(loss/loss_utils.py, ForCausalLMLoss): kept log-softmax, and two fp32 gradients, as in torchtitan.
Query, key, value, gate and up projections are linear layers of their own, each of which sums its input gradient over
the tensor-parallel ranks (models/llama/configuration_llama.py:49-57; distributed/tensor_parallel.py:606; deepspeed
0.19.8, module_inject/layers.py:258-320): five all_reduces in a layer's backward pass, not two.
Launches of the host: those of another eager back-end (``planner.predict.physics.host``, EAGER_LAUNCH_S)."""
HUGGING_FACE = Physics(
    name="hugging-face",
    summary="Hugging Face models, eager, one device or plain data parallelism",
    attention="unfused",
    unfused=EAGER,
    launch_s=EAGER_LAUNCH_S,
    eager_pointwise=True,
    dropout=True,
)
"""Dropout of 0.1 in the configurations of GPT-2, OPT and BERT (transformers, GPT2Config and so on)."""
