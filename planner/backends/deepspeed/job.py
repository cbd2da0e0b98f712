"""The training run that DeepSpeed's configuration file describes, beside a model that is named.

Values that are ``"auto"`` are the training program's to fill in (Hugging Face's Trainer): they are listed with their
lines, and ``-- --key VALUE`` says them.  The file says nothing of the model's own activation checkpointing.  Defaults:
deepspeed 0.19.8 ``runtime/config.py`` and ``runtime/zero/config.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.backends.deepspeed.config_keys import KEYS, REMOVED_KEYS, REMOVED_ZERO_KEYS
from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.settings import flat_settings, literal, overridden
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.megatron_unmodelled import ArgumentLists
from planner.model.megatron_vocabulary import Vocabulary
from planner.model.shell.scope import Undecided
from planner.model.spec import ModelSpec

AUTO = "auto"
USED = frozenset(
    foreign_names("""
    train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps zero_optimization.stage
    zero_optimization.overlap_comm zero_optimization.offload_optimizer.device bf16.enabled fp16.enabled
    tensor_parallel.autotp_size tensor_parallel.tp_overlap_comm expert_parallel.enabled expert_parallel.autoep_size
    expert_parallel.expert_tensor_parallel_size pipeline.stages pipeline.activation_checkpoint_interval
    sequence_parallel_size optimizer.type data_types.grad_accum_dtype zero_optimization.stage3_prefetch_bucket_size
    """)
)
NOT_MODELLED = frozenset(
    foreign_names("""
    zero_optimization.offload_param zero_optimization.zero_hpz_partition_size
    zero_optimization.zero_quantized_weights zero_optimization.zero_quantized_gradients
    zero_optimization.stage3_max_live_parameters zero_optimization.stage3_max_reuse_distance
    zero_optimization.stage3_param_persistence_threshold zero_optimization.sub_group_size
    zero_optimization.reduce_bucket_size zero_optimization.allgather_bucket_size
    zero_optimization.offload_optimizer.ratio zero_optimization.offload_optimizer.nvme_path
    bf16.immediate_grad_update bf16.bf16_master_weights_and_grads bf16.bf16_optimizer_states communication_data_type
    expert_parallel.preset_model expert_parallel.comm_backend tensor_parallel.vocab_parallel_lm_head
    activation_checkpointing seq_parallel_communication_data_type torch_autocast data_types
    """)
)
"""They may change time or memory, and the planner has no word for them; a section stands for all below it."""
ASSUMED: Mapping[str, tuple[Any, ...]] = {
    "zero_optimization.offload_param.device": ("none", None),
    "zero_optimization.offload_param.pin_memory": (True, False),
    "zero_optimization.zero_hpz_partition_size": (1,),
    "zero_optimization.zero_quantized_weights": (False,),
    "zero_optimization.zero_quantized_gradients": (False,),
    "communication_data_type": (None,),
}
NO_INFLUENCE = frozenset(foreign_names("_comment zero_optimization.offload_optimizer activation_checkpointing.profile"))


@dataclass(slots=True)
class Reader:
    """Typed access to a configuration; ``"auto"`` is a value that nobody decided."""

    config: Mapping[str, Any]
    text: str
    where: str
    undecided: list[Undecided] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def value(self, key: str, default: Any = None) -> Any:
        """What is written; None where it is ``"auto"``, which is remembered."""
        found: Any = self.config
        for part in key.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is None:
            return default
        if found == AUTO:
            name = key.rsplit(".", maxsplit=1)[-1]
            lines = [number for number, line in enumerate(self.text.splitlines(), 1) if name in line]
            place = Undecided(next(iter(lines), 0), f"{key} is auto", f"-- --{key} VALUE says it")
            self.undecided += [] if place in self.undecided else [place]
            return None
        return found

    def number(self, key: str, default: int | None = None, least: int = 1) -> int | None:
        """Raises DocumentInvalid for anything but a whole number."""
        found = self.value(key, default)
        whole = isinstance(found, int | float) and not isinstance(found, bool) and found == int(found)
        if found is not None and (not whole or found < least):
            raise DocumentInvalid(f"{key} is {found!r}, not a whole number", where=self.where, hint="correct it")
        return None if found is None else int(found)

    def switch(self, key: str, default: bool = False) -> bool | None:
        """Raises DocumentInvalid for anything but true or false."""
        found = self.value(key, default)
        if found is not None and not isinstance(found, bool):
            raise DocumentInvalid(f"{key} is {found!r}, neither true nor false", where=self.where, hint="correct it")
        return found


def job_of_config(
    text: str, where: str, model: ModelSpec, words: Sequence[str] = (), devices: int | None = None
) -> LaunchJob:
    """The run of a ``ds_config.json``, settings behind it laid over.  Raises DocumentInvalid."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not JSON: {error}", where=where, hint="give DeepSpeed's configuration file") from error
    if not isinstance(config, dict) or "architectures" in config or "hidden_size" in config:
        what = "this is no configuration of DeepSpeed"
        raise DocumentInvalid(what, where=where, hint="a model goes to --model, DeepSpeed's file to --from")
    config |= {name: literal(value) for name, value in overridden(config, words, where).items()}
    reader = Reader(config, text, where)
    strategy, workload = strategy_of(reader)
    _batch(reader, strategy, workload, devices)
    return LaunchJob(
        model,
        workload,
        strategy,
        devices,
        arguments=lists_of(reader),
        vocabulary=Vocabulary(model.vocab_size, "the model's"),
        assumed=tuple(reader.told),
        undecided=tuple(reader.undecided),
        launches=1,
        software="deepspeed",
    )


def strategy_of(reader: Reader) -> tuple[dict[str, Any], dict[str, Any]]:
    """Strategy and workload of everything but the batch.  Raises DocumentInvalid."""
    stage = reader.number("zero_optimization.stage", 0, least=0) or 0
    if stage > 3:
        raise DocumentInvalid(f"zero_optimization.stage is {stage}", where=reader.where, hint="0 to 3 exist")
    cp, ep = reader.number("sequence_parallel_size", 1) or 1, 1
    overlap = bool(reader.switch("zero_optimization.overlap_comm", default=stage == 3))  # both streams: rule P14
    strategy: dict[str, Any] = {
        "tp": reader.number("tensor_parallel.autotp_size", 1, least=0) or 1,
        "cp": cp,
        "cp_kind": "all_to_all" if cp > 1 else "none",
        "pp": reader.number("pipeline.stages", 1) or 1,
        "sp": False,
        "zero_stage": stage,
        "optimizer_offload": reader.value("zero_optimization.offload_optimizer.device", "none") in ("cpu", "nvme"),
        "overlap_grad_reduce": overlap,
        "overlap_param_gather": overlap and stage == 3 and _prefetches(reader),
        "overlap_tp": bool(reader.switch("tensor_parallel.tp_overlap_comm")),
    }
    if reader.switch("expert_parallel.enabled"):
        ep = reader.number("expert_parallel.autoep_size", 1) or 1
        strategy["etp"] = reader.number("expert_parallel.expert_tensor_parallel_size", 1) or 1
    strategy["ep"] = ep
    if reader.number("pipeline.activation_checkpoint_interval", 0, least=0):
        strategy["recompute"] = "full"
    else:
        reader.told.append("recompute: the file does not say it; none is predicted (--strategy recompute=full says it)")
    if reader.value("zero_optimization.offload_optimizer.device", "none") == "nvme":
        reader.missed.append("zero_optimization.offload_optimizer.device = nvme (the host's memory is predicted)")
    return strategy, _precision(reader) | _gradients(reader, strategy["pp"])


def _gradients(reader: Reader, pp: int) -> dict[str, Any]:
    """Gradients have the model's type unless ``data_types`` says another (0.19.8 runtime/engine.py: get_data_types).

    The pipeline engine's BF16_Optimizer accumulates in fp32 by itself.
    """
    kind = reader.value("data_types.grad_accum_dtype")
    return {} if kind == "fp32" or (kind is None and pp > 1) else {"gradient_dtype": "bf16"}


def _prefetches(reader: Reader) -> bool:
    return bool(reader.value("zero_optimization.stage3_prefetch_bucket_size", 1) != 0)


def _precision(reader: Reader) -> dict[str, Any]:
    half, brain = reader.switch("fp16.enabled"), reader.switch("bf16.enabled")
    if half:
        return {"precision": "fp16"}
    if brain:
        return {"precision": "bf16"}
    if half is False and brain is False:
        reader.missed.append("neither bf16 nor fp16: the run is in fp32 (bf16 is predicted)")
    kind = str(reader.value("optimizer.type", "AdamW"))
    if "adam" not in kind.lower():
        reader.missed.append(f"optimizer.type = {kind} (taken as adam)")
    return {}


def _batch(reader: Reader, strategy: dict[str, Any], workload: dict[str, Any], devices: int | None) -> None:
    """``train_batch_size`` = micro-batch x accumulation x replicas; two of them and the devices say the third."""
    micro = reader.number("train_micro_batch_size_per_gpu")
    steps = reader.number("gradient_accumulation_steps")
    total = reader.number("train_batch_size")
    block = strategy["tp"] * strategy["cp"] * strategy["pp"]
    replicas = devices // block if devices and devices % block == 0 else None
    if steps is None and micro is not None and "gradient_accumulation_steps" not in reader.config and total is None:
        steps = 1
    if total is None and micro and steps and replicas:
        total = micro * steps * replicas
        reader.told.append(f"train_batch_size={total}: {micro} x {steps} on {replicas} replicas")
    if total and replicas and micro is None and steps and total % (steps * replicas) == 0:
        micro = total // (steps * replicas)
    if total and micro and steps and replicas and total != micro * steps * replicas:
        what = f"train_batch_size {total} is not {micro} x {steps} on {replicas} replicas"
        raise DocumentInvalid(what, where=reader.where, hint="correct one of them, or --devices")
    if micro:
        strategy["micro_batch_size"] = micro
    if steps:
        strategy["num_microbatches"] = steps
    if total:
        workload["global_batch_size"] = total


def lists_of(reader: Reader) -> ArgumentLists:
    """What became of every key."""
    found: dict[str, list[str]] = {"used": [], "no_influence": [], "not_modelled": list(reader.missed), "unknown": []}
    for key, value in flat_settings(reader.config):
        found[_list_of(key, value)].append(f"{key} = {value}" if not isinstance(value, (dict, list)) else key)
    return ArgumentLists(**{name: tuple(rows) for name, rows in found.items()})


def _list_of(key: str, value: object) -> str:
    above = {".".join(key.split(".")[:depth]) for depth in range(1, key.count(".") + 2)}
    if key in USED:
        return "used"
    if above & NO_INFLUENCE and not above & NOT_MODELLED:
        return "no_influence"
    if above & NOT_MODELLED:
        return "no_influence" if value == AUTO or value in ASSUMED.get(key, ()) else "not_modelled"
    section, _, name = key.partition(".")
    inside = KEYS.get(section, frozenset())
    known = section in KEYS and (inside is None or not name or name.split(".")[0] in inside)
    removed = section in REMOVED_KEYS or name in REMOVED_ZERO_KEYS
    return "not_modelled" if removed else "no_influence" if known else "unknown"
