"""What each setting of a torchtitan job is to a plan: used, without influence, or not modelled.

Every ``section.key`` of 0.2.2's ``config/job_config.py`` and of 0.3.0's ``ParallelismConfig``, ``TrainingConfig`` and
``CompileConfig`` is in exactly one list, alone or with its whole section; ``tests/contract/test_torchtitan_jobs.py``
compares them with the sources.
"""

from __future__ import annotations

from planner.backends.rules.foreign_names import foreign_names

USED = frozenset(
    foreign_names("""
activation_checkpoint.mode activation_checkpoint.selective_ac_option compile.enable compile.components
compile.enable_async_tensor_parallel model.converters model.flavor model.name optimizer.name
parallelism.context_parallel_degree parallelism.data_parallel_replicate_degree
parallelism.data_parallel_shard_degree parallelism.enable_async_tensor_parallel
parallelism.enable_sequence_parallel parallelism.expert_parallel_degree
parallelism.expert_tensor_parallel_degree parallelism.fsdp_reshard_after_forward
parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_degree
parallelism.pipeline_parallel_first_stage_less_layers parallelism.pipeline_parallel_last_stage_less_layers
parallelism.pipeline_parallel_layers_per_stage parallelism.pipeline_parallel_microbatch_size
parallelism.pipeline_parallel_schedule parallelism.tensor_parallel_degree training.global_batch_size
training.local_batch_size training.max_context_length training.mixed_precision_param
training.num_tokens_per_microbatch_per_dp_rank training.seq_len
""")
)
"""Read.  ``max_context_length`` and ``num_tokens_per_microbatch_per_dp_rank``: names of the branch after 0.3.0."""
NOT_MODELLED = frozenset(
    foreign_names("""
activation_checkpoint.early_stop activation_checkpoint.memory_budget
activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns activation_checkpoint.preserve_rng_state
compile.backend debug.deterministic debug.moe_force_load_balance experimental.custom_args_module
experimental.custom_import job.custom_config_module optimizer.early_step_in_backward optimizer.implementation
parallelism.context_parallel_load_balancer parallelism.context_parallel_ptrr_mask_key
parallelism.context_parallel_rotate_method parallelism.disable_loss_parallel parallelism.enable_fsdp_symm_mem
parallelism.expert_parallel_comm_backend parallelism.pipeline_parallel_expert_parallel_overlap
parallelism.pipeline_parallel_schedule_csv parallelism.spmd_backend training.disable_cuda_graphs training.dtype
training.enable_cpu_offload
""")
)
"""They may change time, memory or the model, and the planner has no word for them."""
ASSUMED = {
    "activation_checkpoint.preserve_rng_state": (True, False),
    "compile.backend": ("inductor",),
    "debug.deterministic": (False,),
    "debug.moe_force_load_balance": (False,),
    "optimizer.early_step_in_backward": (False,),
    "optimizer.implementation": ("fused",),
    "parallelism.context_parallel_load_balancer": ("headtail",),
    "parallelism.context_parallel_rotate_method": ("allgather",),
    "parallelism.disable_loss_parallel": (False,),
    "parallelism.enable_fsdp_symm_mem": (False,),
    "parallelism.expert_parallel_comm_backend": ("standard",),
    "parallelism.pipeline_parallel_expert_parallel_overlap": (False,),
    "parallelism.pipeline_parallel_schedule_csv": ("", None),
    "training.dtype": ("float32",),
    "training.enable_cpu_offload": (False,),
    "activation_checkpoint.early_stop": (False,),
}
"""Values with which the prediction is that of the job."""
NO_INFLUENCE = frozenset(
    foreign_names("""
activation_checkpoint.debug activation_checkpoint.determinism_check
activation_checkpoint.visualize_memory_budget_pareto debug.deterministic_warn_only debug.seed job.config_file
job.description job.dump_folder job.print_config job.save_config_file model.hf_assets_path
model.print_after_conversion model.tokenizer_path optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.lr
optimizer.weight_decay training.dataset training.dataset_path training.gc_debug training.gc_freq training.max_norm
training.mixed_precision_reduce training.steps
""")
)
HARMLESS_SECTIONS = frozenset(
    foreign_names("""
checkpoint comm dataloader dump_folder fault_tolerance hf_assets_path loss lr_scheduler memory_estimation metrics
profiler profiling tokenizer training.dataloader validation validator
""")
)
"""Sections, and settings of 0.3.0 beside them, that change no step that the planner predicts."""
NOT_MODELLED_SECTIONS = frozenset({"override", "quantize"})


def list_of(key: str, value: object) -> str:
    """The list of one ``section.key``: used, no_influence, not_modelled or unknown."""
    if key in USED:
        return "used"
    if key in NOT_MODELLED:
        return "no_influence" if value in ASSUMED.get(key, ()) else "not_modelled"
    above = {".".join(key.split(".")[:depth]) for depth in range(1, key.count(".") + 2)}
    if key in NO_INFLUENCE or above & HARMLESS_SECTIONS:
        return "no_influence"
    return "not_modelled" if above & NOT_MODELLED_SECTIONS else "unknown"
