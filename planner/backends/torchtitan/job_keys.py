"""What each setting of a torchtitan job is to a plan: used, without influence, or not modelled.

Every ``section.key`` of 0.2.2's ``config/job_config.py`` and of 0.3.0's ``ParallelismConfig``, ``TrainingConfig`` and
``CompileConfig`` is in exactly one list, alone or with its whole section; ``tests/contract/test_torchtitan_jobs.py``
compares them with the sources.
"""

from __future__ import annotations

from functools import cache

from profiles.shipped_tables import shipped_words

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


@cache
def known_keys() -> dict[str, frozenset[str]]:
    """The lists of ``job_keys.toml`` by name."""
    lists = shipped_words("planner.backends.torchtitan", "job_keys.toml")
    return {name: frozenset(words) for name, words in lists.items()}


def list_of(key: str, value: object) -> str:
    """The list of one ``section.key``: used, no_influence, not_modelled or unknown."""
    known = known_keys()
    if key in known["used"]:
        return "used"
    if key in known["not_modelled"]:
        return "no_influence" if value in ASSUMED.get(key, ()) else "not_modelled"
    above = {".".join(key.split(".")[:depth]) for depth in range(1, key.count(".") + 2)}
    if key in known["no_influence"] or above & known["harmless_sections"]:
        return "no_influence"
    return "not_modelled" if above & known["not_modelled_sections"] else "unknown"
