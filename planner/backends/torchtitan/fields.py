"""The fields of a section in each release, dumped from torchtitan's dataclasses.

0.3.0: ``ParallelismConfig``, ``TrainingConfig``, ``CompileConfig`` of config/configs.py.  0.2.2: the sections of
config/job_config.py that a plan or its owner may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.backends.rules.foreign_names import foreign_names

TABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "0.3.0": {
        "parallelism": foreign_names("""
        context_parallel_degree context_parallel_load_balancer context_parallel_ptrr_mask_key
        data_parallel_replicate_degree data_parallel_shard_degree enable_fsdp_symm_mem
        enable_sequence_parallel expert_parallel_degree fsdp_reshard_after_forward
        module_fqns_per_model_part pipeline_parallel_degree
        pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers
        pipeline_parallel_layers_per_stage pipeline_parallel_microbatch_size
        pipeline_parallel_schedule pipeline_parallel_schedule_csv spmd_backend
        tensor_parallel_degree
        """),
        "training": foreign_names("""
        disable_cuda_graphs dtype enable_cpu_offload gc_debug gc_freq global_batch_size
        local_batch_size max_norm mixed_precision_param mixed_precision_reduce seq_len steps
        """),
        "compile": foreign_names("backend components enable enable_async_tensor_parallel"),
    },
    "0.2.2": {
        "job": foreign_names("""
        config_file custom_config_module description dump_folder print_config save_config_file
        """),
        "model": foreign_names("""
        converters flavor hf_assets_path name print_after_conversion tokenizer_path
        """),
        "optimizer": foreign_names("""
        beta1 beta2 early_step_in_backward eps implementation lr name weight_decay
        """),
        "training": foreign_names("""
        dataloader dataset dataset_path dtype enable_cpu_offload gc_debug gc_freq
        global_batch_size local_batch_size max_norm mixed_precision_param mixed_precision_reduce
        seq_len steps
        """),
        "parallelism": foreign_names("""
        context_parallel_degree context_parallel_load_balancer context_parallel_rotate_method
        data_parallel_replicate_degree data_parallel_shard_degree disable_loss_parallel
        enable_async_tensor_parallel expert_parallel_comm_backend expert_parallel_degree
        expert_tensor_parallel_degree fsdp_reshard_after_forward module_fqns_per_model_part
        pipeline_parallel_degree pipeline_parallel_expert_parallel_overlap
        pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers
        pipeline_parallel_layers_per_stage pipeline_parallel_microbatch_size
        pipeline_parallel_schedule pipeline_parallel_schedule_csv tensor_parallel_degree
        """),
        "activation_checkpoint": foreign_names("""
        debug determinism_check early_stop memory_budget mode
        per_op_sac_force_recompute_mm_shapes_by_fqns preserve_rng_state selective_ac_option
        visualize_memory_budget_pareto
        """),
        "compile": foreign_names("backend components enable"),
        "experimental": foreign_names("custom_args_module custom_import"),
    },
}
"""Release -> section -> fields."""


def unknown_fields(sections: Mapping[str, Mapping[str, Any]], version: str) -> tuple[str, ...]:
    """``section.field`` of everything that the release does not have (it would refuse the file)."""
    table = TABLES[version]
    return tuple(
        f"{name}.{field}" for name, values in sections.items() for field in values if field not in table.get(name, ())
    ) + tuple(f"[{name}]" for name in sections if name not in table)
