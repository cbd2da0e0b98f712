"""The training run of a NeMo 2 recipe object: said in Megatron-Bridge's words (``names``), read as Bridge's is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from planner.backends.megatron_bridge.job import Beside, job_of_settings
from planner.backends.megatron_bridge.settings import Settings
from planner.backends.nemo.names import rows_of, said_paths
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.python_values import Open, Thing

_HARMLESS = re.compile(
    r"(?:log|resume|name|dir)\b|data\.(?!global|micro|seq|packed)|data$"
    r"|trainer\.(?:devices|num_nodes|max_|limit_|log_|val_|num_sanity|accelerator|enable_|logger|use_distributed_sampler"
    r"|accumulate_grad_batches|gradient_clip|check_val|benchmark|default_root|precision)"
    r"|trainer\.strategy\.(?:ckpt_|gradient_as_bucket|pipeline_dtype|save_ckpt|progress|replace_progress|use_te_rng"
    r"|lazy_init|find_unused|setup_opt|init_model|restore_|megatron_log|nccl_comm|use_gloo|use_sharp|parallel_devices"
    r"|cluster_environment|async_save)"
    r"|trainer\.plugins\.(?:params_dtype|pipeline_dtype|autocast|fp8_margin|fp8_amax|fp8_dot|first_last|num_layers_at|grad_scaler|precision)"
    r"|trainer\.callbacks\.(?:straggler|Timing|Garbage|ModelCheckpoint|Preemption|Nsys|Memory|Speed|FLOPs|RunMetrics|LearningRate"
    r"|Progress|Logging|RuntimeEstimator|MegatronEnableExperimental)"
    r"|optim\.(?!config\.(?:optimizer|use_|exp_avg|main_params|overlap|decoupled))|arguments\.|model$|trainer$"
)
"""Paths that change nothing that a plan decides or predicts."""
_USED = frozenset({"trainer.devices", "trainer.num_nodes"})


def job_of_recipe(config: Thing, where: str, beside: Beside) -> LaunchJob:
    """The run of a recipe object.  Raises DocumentInvalid, FindingsInvalid."""
    rows, said = list(rows_of(config)), said_paths(config)
    values = {bridge: _decided(value) for _, bridge, value in rows if bridge}
    spoken = {bridge: path for path, bridge, _ in rows if bridge and path}
    own = {bridge: values[bridge] for path, bridge, _ in rows if bridge and path in said}
    missed, harmless = list(beside.not_modelled), list(beside.no_influence)
    for path, value in _without_word(rows, said):
        (harmless if _HARMLESS.match(path) else missed).append(f"{path}={value}")
    name = config.name.removeprefix("recipe ")
    settings = Settings(values, frozenset(own), where, name, {}, own, spoken)
    devices = beside.devices or _devices(config, where)
    beside = replace(beside, devices=devices, no_influence=tuple(harmless), not_modelled=tuple(missed), software="nemo")
    job = job_of_settings(settings, where, beside)
    used = [f"{path}={value}" for path, _, value in rows if path in _USED and path in said]
    harmless = [row for row in job.arguments.no_influence if row not in used]
    lists = replace(job.arguments, used=(*job.arguments.used, *used), no_influence=tuple(harmless))
    return replace(job, arguments=lists)


def _decided(value: Any) -> Any:
    """A value; a call that is not followed decides nothing."""
    return Open(f"{value.name}(...)", value.line) if isinstance(value, Thing) else value


def _without_word(rows: list[tuple[str, str, Any]], said: set[str]) -> list[tuple[str, Any]]:
    """What was set and has no path in Bridge; sections as a whole are told by their fields."""
    known = {path for path, bridge, _ in rows if bridge}
    values = {path: value for path, _, value in rows}
    found = []
    for path in sorted(said - known):
        inside = any(other.startswith(f"{path}.") for other in (*said, *values) if other != path)
        if not inside:
            value = values.get(path, "...")
            found.append((path, value.text if isinstance(value, Open) else value))
    return found


def _devices(config: Thing, where: str) -> int | None:
    """Devices a node times nodes."""
    trainer = config.fields.get("trainer")
    if not isinstance(trainer, Thing):
        return None
    counts = []
    for name in ("devices", "num_nodes"):
        held = trainer.fields.get(name, 1)
        if isinstance(held, bool) or not isinstance(held, int):
            text = held.text if isinstance(held, Open) else held
            raise DocumentInvalid(
                f"trainer.{name} is {text}, which the text does not decide", where=where, hint="say it: --devices N"
            )
        counts.append(held)
    return counts[0] * counts[1]
