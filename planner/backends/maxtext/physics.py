"""Traits of MaxText."""

from __future__ import annotations

from planner.predict.physics.host import COMPILED_LAUNCH_S
from planner.predict.physics.physics import Physics

MAXTEXT = Physics(
    name="maxtext",
    time_spread=0.122,
    studied_devices=2048,
    summary="MaxText 0.2.5: compiled by XLA",
    launch_s=COMPILED_LAUNCH_S,
    unfused=frozenset({"cross_entropy"}),
    fp32_shards=True,
    kept_logit_bytes=8.0,
    passing_logit_bytes=4.0,
    bubbles_keep=True,
    stores_rounds=True,
)
"""XLA fuses norms, activations and rotary embedding with their neighbours.  Weights are fp32 (weight_dtype, which our
files set), their own master copy where they are sharded.  The loss keeps fp32 logits and their exponentials for its
backward pass (maxtext 0.2.5, utils/max_utils.py:660-689, configs/base.yml:221 cast_logits_to_fp32) and writes one fp32
gradient; what XLA computes again instead is *not studied*.

A pipeline of v repeats is one scan over m v + p - 1 iterations, all forward before all backward, each of which keeps
what a micro-batch of a chunk keeps (layers/pipeline.py:860-941): GPipe with p - 1 further ones.  With more than one
repeat and more micro-batches than stages every stage stores the hidden states of all micro-batches between two repeats,
though only the first one uses them (circ_storage, layers/pipeline.py:94-98 and 257-269; read at commit e591f30c, for
the release's tag is not in the copy at hand).
Embedding and head lie outside of the scan and are shared by the stages, where we give them to the first and the last.
ZeRO-3 gathers in every iteration (configs/base.yml:424, pipeline_fsdp_ag_once is off).

``time_spread``: published GPU runs of Llama 3.1 70B without pipelines (NVIDIA/dgxc-benchmarking,
maxtext/README_70b.md).  Fit part, @35a9aec, 12 rows: median predicted over measured 0.93, 90th percentile of the error
15.1 %; held part, @8f5cbb3, 10 rows: 0.90, 14.6 %.  Four TPU rows are at 0.73: TPUs and mixtures of experts are
*not studied*."""
