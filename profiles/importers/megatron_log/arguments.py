"""Strategy, batch and model from a printed block of arguments.

Megatron prints ``------ arguments ------``, one ``  name ........ value`` a line, ``------ end of arguments ------``;
DeepSpeed prints its configuration the same way without the frame.  Only names known here are kept: paths, hosts and
run names never are.  Strategy keys are those of ``planner.strategy.strategy.Strategy``.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.run import Run
from profiles.importing.number_cells import whole_number
from profiles.observations.records import Scalar

BEGINS = re.compile(r"(?<!-)-{5,80} ?arguments ?-{5}")
ENDS = re.compile(r"(?<!-)-{5,80} ?end of arguments ?-{5}")
_ARGUMENT = re.compile(r"(?:^|[\s:\]])([A-Za-z_][A-Za-z0-9_]{1,80}) ?\.{3,} ?(\S.*)$")
_SUMMARY = re.compile(r"using world size: (\d+)")
_SUMMARY_DEGREE = re.compile(r"(data|tensor-model|pipeline-model|context|expert-model)-parallel[ -]sizes?: (\d+)")

_DEGREES = {
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "moe_expert_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "virtual_pipeline_model_parallel_size": "vpp",
    "data_parallel_size": "dp",
    "zero_stage": "zero_stage",
    "ds_sequence_parallel_size": "cp",
}
_SWITCHES = {
    "sequence_parallel": "sp",
    "overlap_grad_reduce": "overlap_grad_reduce",
    "overlap_param_gather": "overlap_param_gather",
    "tp_comm_overlap": "overlap_tp",
    "optimizer_cpu_offload": "optimizer_offload",
}
_SUMMARY_NAMES = {
    "data": "dp", "tensor-model": "tp", "pipeline-model": "pp", "context": "cp", "expert-model": "ep",
}  # fmt: skip
_SIZES = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
    "padded_vocab_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "recompute_num_layers",
    "checkpoint_num_layers",
)  # fmt: skip
_WORDS = ("transformer_impl", "recompute_method", "optimizer", "attention_backend", "moe_token_dispatcher_type")
_FLAGS = (
    "use_flash_attn",
    "swiglu",
    "fp8",
    "multi_latent_attention",
    "moe_grouped_gemm",
    "untie_embeddings_and_output_weights",
)


def read_argument(text: str, into: dict[str, str]) -> bool:
    """Put the argument of this line into ``into``; False when the line holds none."""
    match = _ARGUMENT.search(text)
    if match is None:
        return False
    into[match[1]] = match[2].strip()
    return True


def read_summary(text: str, run: Run) -> bool:
    """Take ``using world size: 8, data-parallel size: 2, ...``; False when the line is another."""
    match = _SUMMARY.search(text)
    if match is None:
        return False
    run.num_devices = _positive(match[1]) or run.num_devices
    for name, size in _SUMMARY_DEGREE.findall(text):
        degree = _positive(size)
        if degree is not None:
            run.strategy.setdefault(_SUMMARY_NAMES[name], degree)
    return True


def apply_arguments(arguments: dict[str, str], run: Run) -> None:
    """Write what the block says into the run."""
    run.strategy.update(strategy_of(arguments))
    run.num_devices = _positive(arguments.get("world_size", "")) or run.num_devices
    run.global_batch_size = _positive(arguments.get("global_batch_size", "")) or run.global_batch_size
    run.micro_batch_size = _positive(arguments.get("micro_batch_size", "")) or run.micro_batch_size
    run.sequence_length = _positive(arguments.get("seq_length", "")) or run.sequence_length
    run.log_interval = _positive(arguments.get("log_interval", "")) or run.log_interval
    for name in _SIZES:
        size = _positive(arguments.get(name, ""))
        if size is not None:
            run.detail[name] = size
    for name in (*_WORDS, *_FLAGS):
        word = arguments.get(name, "None")
        if word not in ("None", "") and re.fullmatch(r"[\w.-]{1,40}", word):
            run.detail[name] = word == "True" if word in ("True", "False") else word
    precision = next((name for name in ("bf16", "fp16") if arguments.get(name) == "True"), None)
    if precision is not None:
        run.detail["dtype"] = precision


def strategy_of(arguments: dict[str, str]) -> dict[str, Scalar]:
    """Degrees and switches by the planner's names; absent = the block does not say."""
    found: dict[str, Scalar] = {}
    for name, key in _DEGREES.items():
        text = arguments.get(name, "")
        degree = _positive(text) if key != "zero_stage" else (int(text) if text in ("0", "1", "2", "3") else None)
        if degree is not None and key not in found:
            found[key] = degree
    for name, key in _SWITCHES.items():
        if arguments.get(name) in ("True", "False"):
            found[key] = arguments[name] == "True"
    if "recompute" not in found and (policy := _recompute(arguments)) is not None:
        found["recompute"] = policy
    if arguments.get("deepspeed", "False") == "False":
        found.pop("zero_stage", None)
        if (stage := _zero_stage(arguments)) is not None:
            found["zero_stage"] = stage
    return found


def _recompute(arguments: dict[str, str]) -> str | None:
    """``none``, ``selective`` or ``full``, by the names of several generations."""
    granularity = arguments.get("recompute_granularity")
    if granularity is not None:
        return granularity if granularity in ("full", "selective") else "none"
    for name in ("checkpoint_activations", "recompute_activations"):
        if arguments.get(name) == "True":
            return "full" if name == "checkpoint_activations" else "selective"
    method = arguments.get("activations_checkpoint_method")
    if method is not None:
        return "full" if method != "None" else "none"
    return "none" if arguments.get("checkpoint_activations") == "False" else None


def _zero_stage(arguments: dict[str, str]) -> int | None:
    """Stage of ZeRO that Megatron's own switches stand for."""
    if "True" in (
        arguments.get("use_torch_fsdp2"),
        arguments.get("use_megatron_fsdp"),
        arguments.get("use_custom_fsdp"),
    ):
        sharding = arguments.get("data_parallel_sharding_strategy", "")
        return {"no_shard": 0, "optim": 1, "optim_grads": 2}.get(sharding, 3)
    switch = arguments.get("use_distributed_optimizer")
    return None if switch not in ("True", "False") else int(switch == "True")


def _positive(text: str) -> int | None:
    try:
        number = whole_number(text)
    except ValueError:
        return None
    return number if 0 < number < 2**40 else None
