"""The content of ``accelerate_config.yaml``, and the environment variables that it becomes.

``accelerate launch`` turns the file into environment variables and starts the script; the launchers of this package
export the same variables, so that the script sees one thing either way.  Sources: accelerate 1.15.0
``commands/config/config_args.py:195`` (keys), ``utils/launch.py:201-420`` and ``:525-600`` (variables).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.accelerate.way import way
from planner.backends.deepspeed.config import CONFIG_FILE as DEEPSPEED_FILE
from planner.backends.emission.emission import Finding
from planner.backends.rules.foreign_names import foreign_names
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan

CONFIG_FILE = "accelerate_config.yaml"
_KEYS = f"accelerate {ACCELERATE_VERSION} commands/config/config_args.py:195"
_SILENT = f"accelerate {ACCELERATE_VERSION} commands/launch.py:1265 (nested keys are copied unchecked)"

KEYS: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(
        foreign_names("""
        compute_environment distributed_type mixed_precision num_processes num_machines machine_rank main_process_ip
        main_process_port rdzv_backend same_network main_training_function enable_cpu_affinity use_cpu debug gpu_ids
        """)
    ),
    "fsdp_config": frozenset(
        f"fsdp_{key}"
        for key in tuple(
            foreign_names("""
            version reshard_after_forward auto_wrap_policy transformer_layer_cls_to_wrap offload_params
            cpu_ram_efficient_loading state_dict_type activation_checkpointing
            """)
        )
    ),
    "parallelism_config": frozenset(
        f"parallelism_config_{key}"
        for key in ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "cp_backend", "cp_comm_strategy")
    ),
    "deepspeed_config": frozenset({"deepspeed_config_file", "zero3_init_flag", "deepspeed_multinode_launcher"}),
}
"""Key -> the keys allowed inside it, None = a value.  Accelerate itself refuses unknown keys at the top only."""


def accelerate_config(plan: Plan, num_nodes: int) -> dict[str, Any]:
    """The document of a plan."""
    s, workload = plan.chosen(), plan.problem.workload
    kind = way(s)
    config: dict[str, Any] = {"compute_environment": "LOCAL_MACHINE", "distributed_type": kind}
    if kind != "DEEPSPEED":  # there, precision belongs to ds_config.json and Accelerate refuses it here
        config["mixed_precision"] = "fp16" if workload.precision == "fp16" else "bf16"
    config |= {
        "num_processes": s.world_size,
        "num_machines": num_nodes,
        "machine_rank": 0,
        "rdzv_backend": "static",
        "same_network": True,
        "main_training_function": "main",
        "use_cpu": False,
        "debug": False,
    }
    if kind == "FSDP":
        config["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_reshard_after_forward": s.zero_stage == 3,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_offload_params": False,
            "fsdp_cpu_ram_efficient_loading": False,
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            # The script marks the layers to recompute itself: this switch would take all of them.
            "fsdp_activation_checkpointing": False,
        }
        sizes = {"dp_replicate": s.dp_replicate, "dp_shard": s.dp_shard, "tp": s.tp, "cp": s.cp}
        section: dict[str, Any] = {f"parallelism_config_{name}_size": size for name, size in sizes.items()}
        if s.cp > 1:
            # Keys and values go round from rank to rank; ``allgather`` would hold all of them on every rank.
            section |= {"parallelism_config_cp_backend": "torch", "parallelism_config_cp_comm_strategy": "alltoall"}
        config["parallelism_config"] = section
    if kind == "DEEPSPEED":
        config["deepspeed_config"] = {
            "deepspeed_config_file": DEEPSPEED_FILE,
            "deepspeed_multinode_launcher": "standard",
            "zero3_init_flag": s.zero_stage == 3,
        }
    return config


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that ``accelerate launch`` makes of the document, those that the plan decides."""
    variables = {"ACCELERATE_MIXED_PRECISION": str(config.get("mixed_precision", "no"))}
    if config.get("distributed_type") == "FSDP":
        variables["ACCELERATE_USE_FSDP"] = "true"
        for key, value in _section(config, "fsdp_config").items():
            variables[key.upper()] = str(value).lower() if isinstance(value, bool) else str(value)
        parallel = _section(config, "parallelism_config")
        if parallel:
            variables["ACCELERATE_USE_PARALLELISM_CONFIG"] = "true"
            variables |= {key.upper(): str(value) for key, value in parallel.items()}
    elif config.get("distributed_type") == "DEEPSPEED":
        section = _section(config, "deepspeed_config")
        variables |= {
            "ACCELERATE_USE_DEEPSPEED": "true",
            "ACCELERATE_CONFIG_DS_FIELDS": ",".join(section),
            "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(section.get("deepspeed_config_file")),
            "ACCELERATE_DEEPSPEED_ZERO3_INIT": str(section.get("zero3_init_flag")).lower(),
        }
    return variables


def _section(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def config_text(config: Mapping[str, Any]) -> str:
    """The file: two levels, scalars written as JSON, which is YAML too."""
    lines = []
    for key, value in config.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {inner}: {_scalar(each)}" for inner, each in value.items())]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _scalar(value: object) -> str:
    # NO is a truth value in YAML 1.1, which Accelerate's reader follows.
    plain = isinstance(value, str) and value.replace("_", "").replace(".", "").isalnum() and value.upper() != "NO"
    return str(value) if plain else json.dumps(value)


def read_config(text: str) -> dict[str, Any]:
    """Parse the file and hold its keys against the list.  Raises DocumentInvalid."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        config = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentInvalid("not YAML", where=CONFIG_FILE, hint="emit the plan again") from error
    if not isinstance(config, dict):
        raise DocumentInvalid("not a YAML mapping", where=CONFIG_FILE, hint="emit the plan again")
    findings = [f"{finding.where}: {finding.message}" for finding in key_findings(config)]
    if findings:
        raise DocumentInvalid("; ".join(findings), where=CONFIG_FILE, hint="repair these keys or emit the plan again")
    return config


def key_findings(config: Mapping[str, Any]) -> list[Finding]:
    """Keys that Accelerate would refuse (``K1``) or copy in silence without effect (``K2``)."""
    found = []
    for key, value in config.items():
        if key not in KEYS:
            found.append(Finding("accelerate.K1", f"{key} is not a key that plans use", _KEYS, f"#/{key}"))
            continue
        allowed = KEYS[key]
        if allowed is None:
            continue
        if not isinstance(value, dict):
            found.append(Finding("accelerate.K1", f"{key} must be a mapping", _KEYS, f"#/{key}"))
            continue
        unknown = [inner for inner in value if inner not in allowed]
        found += [
            Finding("accelerate.K2", f"{inner} does nothing in {key}", _SILENT, f"#/{key}/{inner}") for inner in unknown
        ]
    return found
