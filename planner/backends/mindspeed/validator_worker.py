"""Asks the real megatron-core 0.12.1 what it makes of MindSpeed arguments, up to the layers of every chunk.

Stages: ``flags`` (every flag is in the release's list, which comes with the request, and what it sets exists in the
release's dataclasses), ``values`` (their types), ``config`` (the real TransformerConfig), ``optimizer`` (the real
OptimizerConfig and DistributedDataParallelConfig), ``groups`` (initialize_model_parallel on torch's fake process group
at full world size), ``build`` (layers and their kinds for every chunk), ``schedule`` (the real interleaved schedule up
to its first forward).  The wheel has no ``megatron.training``, so parser and ``validate_args`` are not asked; nor is
MindSpeed, which no registry has: what its patches change is stated here (``chunk_counts``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, feigned_ranks, serve


def _fields(flags: str, **renamed: str) -> dict[str, str]:
    """Flag -> field of the config; the name follows the flag unless ``renamed`` says otherwise."""
    return {flag: renamed.get(name := flag[2:].replace("-", "_"), name) for flag in flags.split()}


INTEGERS = _fields(
    """
    --num-layers --hidden-size --ffn-hidden-size --num-attention-heads --num-query-groups --kv-channels --q-lora-rank
    --kv-lora-rank --qk-head-dim --qk-pos-emb-head-dim --v-head-dim --mtp-num-layers --num-experts --moe-router-topk
    --moe-ffn-hidden-size --moe-shared-expert-intermediate-size --moe-router-num-groups --moe-router-group-topk
    --tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size --expert-model-parallel-size
    --expert-tensor-parallel-size --microbatch-group-size-per-virtual-pipeline-stage --recompute-num-layers
    """,
    num_experts="num_moe_experts",
    microbatch_group_size_per_virtual_pipeline_stage="microbatch_group_size_per_vp_stage",
)
WORDS = _fields(
    """
    --normalization --moe-router-score-function --moe-token-dispatcher-type --moe-router-dtype --recompute-granularity
    --recompute-method
    """
)
NUMBERS = _fields("--norm-epsilon --attention-dropout --hidden-dropout", norm_epsilon="layernorm_epsilon")
SWITCHES = {
    "--multi-latent-attention": ("multi_latent_attention", True),
    "--qk-layernorm": ("qk_layernorm", True),
    "--add-qkv-bias": ("add_qkv_bias", True),
    "--disable-bias-linear": ("add_bias_linear", False),
    "--swiglu": ("gated_linear_unit", True),
    "--no-rope-fusion": ("apply_rope_fusion", False),
    "--moe-grouped-gemm": ("moe_grouped_gemm", True),
    "--moe-permute-fusion": ("moe_permute_fusion", True),
    "--moe-router-enable-expert-bias": ("moe_router_enable_expert_bias", True),
    "--moe-router-pre-softmax": ("moe_router_pre_softmax", True),
    "--sequence-parallel": ("sequence_parallel", True),
    "--bf16": ("bf16", True),
    "--fp16": ("fp16", True),
    "--no-masked-softmax-fusion": ("masked_softmax_fusion", False),
}
TOLD = {
    "tp": "tensor_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
    "ep": "expert_model_parallel_size",
    "cp": "context_parallel_size",
    "sp": "sequence_parallel",
    "recompute_granularity": "recompute_granularity",
}
"""Fact -> field of the config."""
FUSED = """
fused_permute fused_permute_with_probs fused_sort_chunks_by_index fused_sort_chunks_by_index_with_probs fused_unpermute
"""
_LIST = re.compile(r"[\[\]()\d*+,]+")


def parsed(words: list[str]) -> dict[str, list[str]]:
    """Flag -> values."""
    found: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            if flag in found:
                raise Refused(f"{flag} is given twice")
            found[flag] = []
        elif not flag:
            raise Refused(f"{word!r} stands before any flag")
        else:
            found[flag].append(word)
    return found


def check_flags(given: dict[str, list[str]], known: list[str]) -> None:
    """Every flag is in the release's list, and those that set a field of the model set one that exists."""
    from megatron.core.transformer.transformer_config import MLATransformerConfig

    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Refused(f"unknown flags: {' '.join(unknown)}")
    fields = {field.name for field in dataclasses.fields(MLATransformerConfig)}
    targets = {**INTEGERS, **WORDS, **NUMBERS, **{flag: name for flag, (name, _) in SWITCHES.items()}}
    absent = sorted(flag for flag in given if flag in targets and targets[flag] not in fields)
    if absent:
        raise Refused(f"this release has no field behind {' '.join(absent)}")


def one(given: dict[str, list[str]], flag: str) -> str:
    """The single value of a flag that must be there."""
    if len(given.get(flag, ())) != 1:
        raise Refused(f"{flag} takes one value, not {given.get(flag)}")
    return given[flag][0]


def count(given: dict[str, list[str]], flag: str, default: int | None = None) -> int:
    """A positive number."""
    if flag not in given and default is not None:
        return default
    number = int(one(given, flag))
    if number < 1:
        raise Refused(f"{flag} is {number}")
    return number


def config_values(given: dict[str, list[str]]) -> dict[str, Any]:
    """Keyword arguments of the config, as ``core_transformer_config_from_args`` makes them."""
    import torch
    from torch.nn import functional

    values: dict[str, Any] = {name: int(one(given, flag)) for flag, name in INTEGERS.items() if flag in given}
    values |= {name: one(given, flag) for flag, name in WORDS.items() if flag in given}
    values |= {name: float(one(given, flag)) for flag, name in NUMBERS.items() if flag in given}
    for flag, (name, value) in SWITCHES.items():
        if flag in given:
            if given[flag]:
                raise Refused(f"{flag} takes no value, not {given[flag]}")
            values[name] = value
    if "--recompute-modules" in given:
        values["recompute_modules"] = list(given["--recompute-modules"])
    if "--moe-layer-freq" in given:
        text = one(given, "--moe-layer-freq")
        if not _LIST.fullmatch(text):
            raise Refused(f"--moe-layer-freq is {text!r}")
        values["moe_layer_freq"] = eval(text, {"__builtins__": {}})
    if "--swiglu" in given:
        values |= {"activation_func": functional.silu, "bias_activation_fusion": True}
    elif "--squared-relu" in given:
        values["activation_func"] = lambda tensor: torch.pow(functional.relu(tensor), 2)
    dtype = torch.bfloat16 if "--bf16" in given else torch.float16 if "--fp16" in given else torch.float32
    values |= {"params_dtype": dtype, "pipeline_dtype": dtype}
    vpp = virtual_stages(given)
    if vpp > 1 and "--schedules-method" not in given:
        values |= {"virtual_pipeline_model_parallel_size": vpp, "overlap_p2p_comm": True, "batch_p2p_comm": False}
    return values


def layout_entries(text: str) -> list[str]:
    """Stages of a pipeline layout, repeats written out."""
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda match: match[1] * int(match[2]), text)
    text = re.sub(r"(.)\*(\d+)", lambda match: match[1] * int(match[2]), text)
    return text.replace(",", "").split("|")


def virtual_stages(given: dict[str, list[str]]) -> int:
    """Chunks of a pipeline rank."""
    pp = count(given, "--pipeline-model-parallel-size")
    if "--schedules-method" in given:
        return 2
    if "--pipeline-model-parallel-layout" in given:
        entries = layout_entries(one(given, "--pipeline-model-parallel-layout"))
        if len(entries) % pp:
            raise Refused(f"{len(entries)} entries of the layout do not divide over {pp} pipeline ranks")
        return len(entries) // pp
    if "--num-layers-per-virtual-pipeline-stage" not in given:
        return 1
    each, layers = count(given, "--num-layers-per-virtual-pipeline-stage"), count(given, "--num-layers")
    if layers % pp or (layers // pp) % each:
        raise Refused(f"{layers} layers on {pp} ranks are not chunks of {each}")
    return layers // pp // each


def configs(given: dict[str, list[str]]) -> Any:
    """The real config of the model."""
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

    values = config_values(given)
    return (MLATransformerConfig if values.get("multi_latent_attention") else TransformerConfig)(**values)


def optimizer_configs(given: dict[str, list[str]]) -> None:
    """The real configs of optimizer and data parallelism."""
    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig

    sharded = "--use-distributed-optimizer" in given
    OptimizerConfig(
        optimizer=one(given, "--optimizer"),
        bf16="--bf16" in given,
        fp16="--fp16" in given,
        use_distributed_optimizer=sharded,
        lr=float(one(given, "--lr")),
    )
    DistributedDataParallelConfig(
        grad_reduce_in_fp32="--grad-reduce-in-bf16" not in given,
        overlap_grad_reduce="--overlap-grad-reduce" in given,
        overlap_param_gather="--overlap-param-gather" in given,
        use_distributed_optimizer=sharded,
        num_distributed_optimizer_instances=count(given, "--num-distributed-optimizer-instances", 1),
        use_custom_fsdp="--use-custom-fsdp" in given,
        data_parallel_sharding_strategy=given.get("--data-parallel-sharding-strategy", ["no_shard"])[0],
    )


def chunk_counts(given: dict[str, list[str]], config: Any, mpu: Any) -> list[int]:
    """Layers of every chunk along the model.

    The release's own ``get_num_layers_to_build`` where it is not patched; MindSpeed's DualPipeV gives every chunk half
    a rank's share (dualpipev_chunks.py), and its layout what the entry says.
    """
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    pp, vpp = config.pipeline_model_parallel_size, virtual_stages(given)
    if "--pipeline-model-parallel-layout" in given:
        return layout_counts(layout_entries(one(given, "--pipeline-model-parallel-layout")), config)
    if "--schedules-method" in given:
        if config.num_layers % (2 * pp):
            raise Refused(f"{config.num_layers} layers are not multiples of 2 x {pp}: DualPipeV would drop some")
        each = config.num_layers // pp // 2
        empty = empty_layers(given)
        starts = range(0, config.num_layers, each)
        return [sum(layer not in empty for layer in range(start, start + each)) for start in starts]
    counts = []
    for chunk in range(vpp):
        for rank in range(pp):
            mpu.set_pipeline_model_parallel_rank(rank)
            if vpp > 1:
                mpu.set_virtual_pipeline_model_parallel_rank(chunk)
            counts.append(int(get_num_layers_to_build(config)))
    return counts


def empty_layers(given: dict[str, list[str]]) -> set[int]:
    """Layers that ``--noop-layers`` leaves out."""
    if "--noop-layers" not in given:
        return set()
    return {int(word) for word in one(given, "--noop-layers").split(",")}


def layout_counts(entries: list[str], config: Any) -> list[int]:
    """The back-port's own demands on a layout: E first, L last, all layers and MTP layers once, MTP behind them."""
    text = "".join(entries)
    mtp = config.mtp_num_layers or 0
    held = (
        set(text) <= set("EtmL"),
        entries[0][:1] == "E" and text.count("E") == 1,
        entries[-1][-1:] == "L" and text.count("L") == 1,
        text.count("t") == config.num_layers,
        text.count("m") == mtp and (not mtp or text.rindex("t") < text.index("m")),
    )
    if not all(held):
        raise Refused(f"the layout {'|'.join(entries)} does not place every layer once")
    return [entry.count("t") for entry in entries]


def layer_kinds(config: Any, mpu: Any) -> list[bool]:
    """Whether each layer has experts, from the release's own layer specs; leaves all layers on one pipeline rank."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.transformer.moe.moe_layer import MoELayer

    if config.num_moe_experts is None:
        return [False] * config.num_layers
    config.pipeline_model_parallel_size, config.virtual_pipeline_model_parallel_size = 1, None
    mpu.set_pipeline_model_parallel_world_size(1)
    mpu.set_virtual_pipeline_model_parallel_world_size(None)
    mpu.set_pipeline_model_parallel_rank(0)
    specs = get_gpt_decoder_block_spec(config, use_transformer_engine=False).layer_specs
    return [spec.submodules.mlp.module is MoELayer for spec in specs]


class _FirstForward(Exception):
    """The schedule reached its first forward."""


def interleaved_starts(given: dict[str, list[str]], config: Any, mpu: Any, num_microbatches: int, vpp: int) -> None:
    """Run the release's interleaved schedule until it asks for the first forward."""
    import torch
    from megatron.core.enums import ModelType
    from megatron.core.pipeline_parallel.schedules import forward_backward_pipelining_with_interleaving

    class Chunk(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config, self.model_type = config, ModelType.encoder_or_decoder

        def set_input_tensor(self, _tensor: Any) -> None:
            raise _FirstForward

    mpu.set_pipeline_model_parallel_rank(0)
    mpu.set_virtual_pipeline_model_parallel_rank(0)
    with contextlib.suppress(_FirstForward):
        forward_backward_pipelining_with_interleaving(
            forward_step_func=None,
            data_iterator=[None] * vpp,
            model=[Chunk() for _ in range(vpp)],
            num_microbatches=num_microbatches,
            seq_length=count(given, "--seq-length"),
            micro_batch_size=count(given, "--micro-batch-size"),
            forward_only=True,
        )


def groups(given: dict[str, list[str]], config: Any, mpu: Any) -> dict[str, Any]:
    """Process groups of rank 0 of a feigned world."""
    mpu.initialize_model_parallel(
        config.tensor_model_parallel_size,
        config.pipeline_model_parallel_size,
        config.virtual_pipeline_model_parallel_size,
        context_parallel_size=config.context_parallel_size,
        expert_model_parallel_size=config.expert_model_parallel_size,
        num_distributed_optimizer_instances=count(given, "--num-distributed-optimizer-instances", 1),
        expert_tensor_parallel_size=config.expert_tensor_parallel_size,
        order="tp-cp-ep-pp-dp" if "--use-tp-pp-dp-mapping" in given else "tp-cp-ep-dp-pp",
        create_gloo_process_groups=False,
    )
    shards = mpu.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=True)
    return {"optimizer_shards": shards.size(), "dp": mpu.get_data_parallel_world_size()}


def batches(given: dict[str, list[str]], dp: int) -> int:
    """Micro-batches of a step; what ``validate_args`` demands of lengths is restated."""
    each = count(given, "--micro-batch-size") * dp
    samples = count(given, "--global-batch-size")
    if samples % each:
        raise Refused(f"global batch {samples} is not a multiple of micro-batch x dp = {each}")
    if count(given, "--max-position-embeddings") < count(given, "--seq-length"):
        raise Refused("--max-position-embeddings is below --seq-length")
    return samples // each


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Every stage."""
    import megatron.core.parallel_state as mpu

    yield "flags"
    given = parsed(request["arguments"])
    check_flags(given, request["flags"])
    yield "values"
    config_values(given)
    yield "config"
    config = configs(given)
    yield "optimizer"
    optimizer_configs(given)
    yield "groups"
    with feigned_ranks(request["world_size"]):
        try:
            facts |= {"vpp": virtual_stages(given), **{fact: getattr(config, name) for fact, name in TOLD.items()}}
            facts |= groups(given, config, mpu)
            yield "values"
            facts["num_microbatches"] = batches(given, facts["dp"])
            yield "build"
            facts["layers_per_chunk"] = chunk_counts(given, config, mpu)
            yield "schedule"
            if config.virtual_pipeline_model_parallel_size:
                interleaved_starts(given, config, mpu, facts["num_microbatches"], facts["vpp"])
            yield "build"
            kinds = layer_kinds(config, mpu)
            facts["expert_layers"] = [kind for layer, kind in enumerate(kinds) if layer not in empty_layers(given)]
        finally:
            with contextlib.suppress(Exception):
                mpu.destroy_model_parallel()


def prepare(overlay: Path) -> None:
    """No device; MindSpeed brings the fused permutation of tokens that the config asks Transformer Engine for."""
    import torch
    from megatron.core.transformer.moe import moe_utils

    for name in FUSED.split():
        setattr(moe_utils, name, lambda *_arguments, **_options: None)
    torch.cuda.current_device = lambda: 0
    torch.Tensor.cuda = lambda tensor, *_arguments, **_options: tensor  # type: ignore[method-assign]


if __name__ == "__main__":
    serve(stages, prepare)
