"""What functions of NeMo's own performance scripts set on a recipe (NVIDIA/NeMo v2.4.0, scripts/performance).

``set_primary_perf_configs`` (helpers.py:347) sets devices, batch, degrees, precision, recompute and Megatron-FSDP;
``get_comm_overlap_callback_idx`` (utils.py) gives the place of a callback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.python_values import Open, Thing

_ORDER = (
    "recipe", "task", "num_nodes", "num_gpus_per_node", "mbs", "gbs", "max_steps", "tp_size", "pp_size", "cp_size",
    "vp_size", "ep_size", "etp_size", "enable_cuda_graphs", "use_mcore_fsdp", "use_user_buffer_registration",
    "use_sharp", "recompute_layers", "activation_offload_layers", "compute_dtype", "fp8_recipe",
    "recompute_modules", "nccl_communicator_config_path", "keep_fsdp_fp8_transpose_cache",
)  # fmt: skip
_PATHS = {
    "num_nodes": "trainer.num_nodes",
    "num_gpus_per_node": "trainer.devices",
    "mbs": "data.micro_batch_size",
    "gbs": "data.global_batch_size",
    "tp_size": "trainer.strategy.tensor_model_parallel_size",
    "pp_size": "trainer.strategy.pipeline_model_parallel_size",
    "cp_size": "trainer.strategy.context_parallel_size",
    "ep_size": "trainer.strategy.expert_model_parallel_size",
    "etp_size": "trainer.strategy.expert_tensor_parallel_size",
}
_EIGHT_BIT = {
    "ds": "bf16_with_fp8_mixed",
    "cs": "bf16_with_fp8_current_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "ss": "bf16_with_fp8_subchannel_scaling_mixed",
}
FUNCTIONS = frozenset({"set_primary_perf_configs", "get_comm_overlap_callback_idx", "set_exp_logging_configs"})


def called(name: str, arguments: list[Any], settings: Mapping[str, Any], line: int) -> Any:
    """What one of the ``FUNCTIONS`` gives; None for arguments that are no recipe."""
    given = {**dict(zip(_ORDER, arguments, strict=False)), **settings}
    recipe = given.get("recipe")
    if name == "get_comm_overlap_callback_idx":
        held = arguments[0] if arguments else settings.get("callbacks")
        names = [each.name.rpartition(".")[2] if isinstance(each, Thing) else "" for each in held or ()]
        wanted = "MegatronCommOverlapCallback"
        return names.index(wanted) if wanted in names else None
    if not isinstance(recipe, Thing):
        return None
    if name == "set_primary_perf_configs":
        for path, value in _said(given).items():
            _set(recipe, path, value, line)
    return recipe


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """Paths and values; an argument that the text does not decide stays open on its path."""
    found = {path: given[name] for name, path in _PATHS.items() if name in given}
    virtual, tensor = given.get("vp_size"), given.get("tp_size", 1)
    found["trainer.strategy.virtual_pipeline_model_parallel_size"] = None if virtual == 1 else virtual
    found["trainer.strategy.sequence_parallel"] = tensor if isinstance(tensor, Open) else tensor > 1
    found |= _precision(given)
    layers, offloaded = (given.get(name, 0) for name in ("recompute_layers", "activation_offload_layers"))
    if isinstance(layers, Open) or layers > 0:
        found |= {"model.config.recompute_granularity": "full", "model.config.recompute_method": "block"}
        found["model.config.recompute_num_layers"] = layers
    if isinstance(offloaded, Open) or offloaded > 0:
        found |= {"model.config.cpu_offloading": True, "model.config.cpu_offloading_num_layers": offloaded}
    if given.get("recompute_modules") is not None:
        found["model.config.recompute_modules"] = given["recompute_modules"]
    fsdp = given.get("use_mcore_fsdp", False)
    if isinstance(fsdp, Open) or fsdp:
        found["trainer.strategy.fsdp"] = fsdp if isinstance(fsdp, Open) else "megatron"
        found["trainer.strategy.ddp.data_parallel_sharding_strategy"] = "optim_grads_params"
    if given.get("enable_cuda_graphs"):
        found["model.config.enable_cuda_graph"] = given["enable_cuda_graphs"]
    return found


def _precision(given: Mapping[str, Any]) -> dict[str, Any]:
    kind, recipe = given.get("compute_dtype"), given.get("fp8_recipe")
    if kind is None:
        return {}
    if isinstance(kind, Open) or isinstance(recipe, Open):
        return {"trainer.plugins": kind if isinstance(kind, Open) else recipe}
    found: dict[str, Any] = {}
    if str(kind).lower() == "bf16":
        found["optim.config.use_precision_aware_optimizer"] = True
    if str(kind).lower() == "fp8":
        held = str(recipe or "ds").lower()
        found["trainer.plugins"] = Thing(_EIGHT_BIT.get(held, held))
        if held == "mxfp8":
            found["callbacks.overlap_param_gather"] = False
    return {**found, "trainer.plugins.grad_reduce_in_fp32": False}


def _set(recipe: Thing, path: str, value: Any, line: int) -> None:
    below = recipe
    *sections, name = path.split(".")
    if sections == ["callbacks"]:
        trainer = recipe.fields.get("trainer")
        held = trainer.fields.get("callbacks") if isinstance(trainer, Thing) else ()
        for each in held if isinstance(held, list) else ():
            if isinstance(each, Thing) and each.name.endswith("MegatronCommOverlapCallback"):
                each.set(name, value, line)
        return
    for section in sections:
        held = below.fields.get(section)
        if not isinstance(held, Thing):
            held = below.fields[section] = Thing("", line, replaces=held)
        below = held
    below.set(name, value, line)
