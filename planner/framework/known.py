"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

NANOTRON = FrameworkTraits(
    name="nanotron",
    bucket_bytes=2.0,
    passing_gradient_bytes=2.0,
    kept_fragmentation=1.10,
    keeps_gate_output=True,
    collective_buffers=2,
    whole_sequence_tensors=3.0,
    backward_working_share=2.0 / 3.0,
    step_copies=True,
    further_communicators=2,
    memory_spread=0.045,
)
"""huggingface/nanotron, sources of late 2024: DistributedDataParallel without gradient views beside an fp32 accumulator
that frees ``.grad`` after each backward pass (optim/gradient_accumulator.py); SwiGLU of split, silu and product
(models/llama.py); gathered inputs of column-parallel and gathered gradients of row-parallel matmuls in two global
buffers (parallel/tensor_parallel/functional.py, MemoryBuffer); unreduced outputs and input gradients as whole tensors
(same file: output of a row-parallel matmul, gradient before and after its reduce-scatter); all_gather_coalesced after
the ZeRO-1 step (optim/zero.py).  Backward of the feed-forward part holds the gradients of gate, up, silu and product,
4 f of the 8 h + 4 f elements that a layer keeps.  The world's group (barriers) and the model-parallel group (gradient
norm) have communicators of their own.

``kept_fragmentation`` and ``memory_spread`` are fitted on the fit part of the HF Ultra-Scale sweep, 122 runs without
tensor parallelism (with it the pool also counts what side streams release late): reserved = state + 1.11 x kept
activations + 1.17 x logits + 1.5 GiB, spread 4.5 %.  Reserved memory of all runs, mean error: 22 % -> 13 %."""

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED, NANOTRON)}
"""By the name that ``--framework`` and ``Problem.framework`` use."""


def framework_traits(name: str) -> FrameworkTraits:
    """Traits of one framework.  Raises DocumentInvalid with the names that exist."""
    if name not in FRAMEWORKS:
        raise DocumentInvalid(
            f"no framework is called {name!r}",
            where="--framework",
            hint=f"choose among {', '.join(sorted(FRAMEWORKS))}",
        )
    return FRAMEWORKS[name]
