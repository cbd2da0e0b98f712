"""Reads the strategy and layout from the config YAML, ``training.json`` and ``launch.sh``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.backends.accelerate.config import CONFIG_FILE, environment, read_config
from planner.backends.accelerate.training_document import TRAINING_FILE, AccelerateTraining, read_training
from planner.backends.deepspeed.adapters import adapters_agree
from planner.backends.deepspeed.config import CONFIG_FILE as DEEPSPEED_FILE
from planner.backends.deepspeed.config_keys import config_findings
from planner.backends.deepspeed.read import config_strategy
from planner.backends.deepspeed.training_document import read_layout
from planner.backends.deepspeed.write import MODEL_CONFIG_FILE
from planner.backends.emission.emitted import file_of
from planner.backends.emission.layout import Layout
from planner.backends.launch.rank_environment import rank_environment
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.errors import DocumentInvalid
from planner.strategy.strategy import Strategy

_PREFIXES = ("ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_")
_AGAIN = "emit the plan again"


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """The strategy and layout that Accelerate and the script would run.

    Raises DocumentInvalid for a missing or malformed file, for keys that Accelerate or DeepSpeed would refuse or
    ignore, and when the files contradict each other.
    """
    config = read_config(file_of(files, CONFIG_FILE))
    training = read_training(file_of(files, TRAINING_FILE))
    kind = config.get("distributed_type")
    if kind == "DEEPSPEED":
        strategy = _through_deepspeed(files, training)
    elif kind == "FSDP":
        strategy = _through_fsdp(config, training, '"_class_name"' in files.get(MODEL_CONFIG_FILE, ""))
    elif kind in ("MULTI_GPU", "NO"):
        strategy = _plain(training)
    else:
        raise DocumentInvalid(f"{kind!r} is no distributed type of plans", where=CONFIG_FILE, hint=_AGAIN)
    _agree(strategy, config, training, files)
    adapters_agree(training.training, files, TRAINING_FILE)
    return strategy, read_layout(training, optimizer_offload=strategy.optimizer_offload)


def _through_deepspeed(files: Mapping[str, str], training: AccelerateTraining) -> Strategy:
    try:
        config = json.loads(file_of(files, DEEPSPEED_FILE))
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid("not JSON", where=DEEPSPEED_FILE, hint=_AGAIN) from error
    if not isinstance(config, dict):
        raise DocumentInvalid("not a JSON object", where=DEEPSPEED_FILE, hint=_AGAIN)
    findings = config_findings(config, training.mesh.data_replicate * training.mesh.data_shard)
    if findings:
        told = "; ".join(f"{finding.where}: {finding.message}" for finding in findings)
        raise DocumentInvalid(told, where=DEEPSPEED_FILE, hint=_AGAIN)
    return config_strategy(config, training)


def _through_fsdp(config: Mapping[str, Any], training: AccelerateTraining, denoiser: bool) -> Strategy:
    fsdp, sizes = config.get("fsdp_config", {}), config.get("parallelism_config", {})
    if fsdp.get("fsdp_version") != 2 or fsdp.get("fsdp_offload_params") or fsdp.get("fsdp_activation_checkpointing"):
        what = "plans use fsdp_version 2 without fsdp_offload_params and fsdp_activation_checkpointing"
        raise DocumentInvalid(what, where=f"{CONFIG_FILE}#/fsdp_config", hint=_AGAIN)
    degrees = {}
    for name in ("dp_replicate", "dp_shard", "tp", "cp"):
        size = sizes.get(f"parallelism_config_{name}_size", 1)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            where = f"{CONFIG_FILE}#/parallelism_config"
            raise DocumentInvalid(f"{name} size must be a positive whole number, is {size!r}", where=where)
        degrees[name] = size
    if degrees["cp"] > 1 and sizes.get("parallelism_config_cp_comm_strategy", "allgather") != "alltoall":
        raise DocumentInvalid("plans pass keys and values round: cp_comm_strategy alltoall", where=CONFIG_FILE)
    return Strategy(
        tp=degrees["tp"],
        cp=degrees["cp"],
        dp_replicate=degrees["dp_replicate"],
        dp_shard=degrees["dp_shard"],
        micro_batch_size=training.micro_batch_size,
        num_microbatches=training.num_microbatches,
        cp_kind="none" if degrees["cp"] == 1 else "all_to_all" if denoiser else "ring",
        zero_stage=3 if fsdp.get("fsdp_reshard_after_forward", True) else 2,
        recompute=training.recompute,
        overlap_grad_reduce=True,
        overlap_param_gather=True,
    )


def _plain(training: AccelerateTraining) -> Strategy:
    dp = training.mesh.world_size
    return Strategy(
        dp_shard=dp,
        micro_batch_size=training.micro_batch_size,
        num_microbatches=training.num_microbatches,
        zero_stage=0,
        recompute=training.recompute,
        overlap_grad_reduce=dp > 1,
        overlap_param_gather=False,
    )


def _agree(
    strategy: Strategy, config: Mapping[str, Any], training: AccelerateTraining, files: Mapping[str, str]
) -> None:
    """The files must say one thing."""
    mesh, script = training.mesh, files.get(LAUNCH_SCRIPT)
    meant = (1, strategy.dp_replicate, strategy.dp_shard, strategy.cp, strategy.tp)
    said = (mesh.pipe, mesh.data_replicate, mesh.data_shard, mesh.sequence, mesh.tensor)
    exported = {name: value for name, value in rank_environment(files).items() if name.startswith(_PREFIXES)}
    started = strategy.world_size if script is None else read_world_size(script)
    batch = (strategy.micro_batch_size, strategy.num_microbatches)
    problems = [
        message
        for wrong, message in (
            (meant != said, f"{CONFIG_FILE} says (pipe, replicate, shard, cp, tp) = {meant}, {TRAINING_FILE} {said}"),
            (len(training.stages) != 1 or len(training.stages[0].chunks) != 1, "there must be one stage of one chunk"),
            (config.get("num_processes") != strategy.world_size, f"num_processes is not {strategy.world_size}"),
            (started != strategy.world_size, f"{LAUNCH_SCRIPT} starts {started} ranks, not {strategy.world_size}"),
            (
                batch != (training.micro_batch_size, training.num_microbatches),
                f"{DEEPSPEED_FILE} and {TRAINING_FILE} differ in the batch",
            ),
            (
                script is not None and exported != environment(config),
                f"{LAUNCH_SCRIPT} exports other variables than accelerate launch would make of {CONFIG_FILE}",
            ),
        )
        if wrong
    ]
    if problems:
        raise DocumentInvalid("; ".join(problems), where=CONFIG_FILE, hint=_AGAIN)
