"""Asks Accelerate about a config file: its reader, its launcher up to the environment of ranks, its mesh and plugins.

Stages: ``config`` (``load_config_from_file``), ``launch`` (the launch parser and ``_validate_launch_command``),
``environment`` (what ``accelerate launch`` would export, held against what our launcher exports), ``mesh``
(``ParallelismConfig`` from that environment, its rules for the number of processes, and the real device mesh on torch's
``fake`` process group), ``plugin`` (``FullyShardedDataParallelPlugin`` or ``DeepSpeedPlugin`` from that environment),
``adapters`` (PEFT's own reader of ``adapter_config.json``, and the model with these adapters on the meta device, whose
trained parameters are counted; needs transformers), ``denoiser`` (the class of diffusers from ``model_config.json`` on
the meta device, whose parameters are counted; for diffusion transformers, needs diffusers).
Not proved: anything else about the model, memory or speed; no rank is started.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from planner.backends.checking.answers import Refused, feigned_ranks, serve, usage

PREFIXES = ("ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_")


def launched_environment(path: Path, variables: dict[str, str], facts: dict[str, Any]) -> Iterator[str]:
    """The variables of Accelerate's own that a rank would see, and what the launcher understood, stage by stage."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import launch

    yield "config"
    load_config_from_file(str(path))
    yield "launch"
    words = ["--config_file", str(path), "--main_process_ip", "node0", "train_accelerate.py"]
    arguments, defaults, from_config = _validate_launch_command(launch_command_parser().parse_args(words))
    yield "environment"
    with mock.patch.object(launch, "is_port_in_use", return_value=False):
        if arguments.use_deepspeed:
            # As launch_command does it before it calls the next line (commands/launch.py:1394).
            fields = list(defaults.deepspeed_config) + ["mixed_precision"] * from_config
            arguments.deepspeed_fields_from_accelerate_config = ",".join(fields)
            _, made = launch.prepare_deepspeed_cmd_env(arguments)
        else:
            made = launch.prepare_multi_gpu_env(arguments)
    facts |= {
        "distributed_type": defaults.distributed_type.value,
        "num_processes": arguments.num_processes,
        "num_machines": arguments.num_machines,
        "mixed_precision": arguments.mixed_precision,
    }
    variables |= {name: value for name, value in made.items() if name.startswith(PREFIXES)}


def compare(launched: Mapping[str, str], exported: Mapping[str, str]) -> None:
    """Our launcher must export what Accelerate's would."""
    wrong = [
        f"{name}={value}, accelerate launch makes {launched.get(name)}"
        for name, value in exported.items()
        if name.startswith(PREFIXES) and launched.get(name) != value
    ]
    # What we leave out must be what Accelerate takes without it; these decide how ranks work together.
    needed: tuple[str, ...] = (
        "ACCELERATE_USE_",
        "FSDP_VERSION",
        "FSDP_RESHARD",
        "FSDP_OFFLOAD",
        "PARALLELISM_CONFIG_DP",
    )
    needed = (*needed, "PARALLELISM_CONFIG_TP", "PARALLELISM_CONFIG_CP_SIZE", "PARALLELISM_CONFIG_CP_COMM")
    wrong += [
        f"{name} is not exported, accelerate launch makes {value}"
        for name, value in launched.items()
        if name.startswith(needed) and name not in exported
    ]
    if wrong:
        raise Refused("; ".join(wrong))


def check_mesh(world_size: int, kind: str, mesh: dict[str, int], facts: dict[str, Any]) -> None:
    """The real mesh, and the checks that ``Accelerator`` makes with its number of processes."""
    import torch.distributed
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import DistributedType

    parallel = ParallelismConfig()
    sizes = {
        "data_replicate": parallel.dp_replicate_size,
        "data_shard": parallel.dp_shard_size,
        "sequence": parallel.cp_size,
        "tensor": parallel.tp_size,
    }
    planned = {name: mesh[name] for name in sizes}
    if kind == "FSDP" and sizes != planned:
        raise Refused(f"Accelerate would use {sizes}, training.json plans {planned}")
    accelerator = SimpleNamespace(
        multi_device=world_size > 1,
        num_processes=world_size,
        is_fsdp2=kind == "FSDP",
        distributed_type=DistributedType(kind),
        is_main_process=True,
    )
    parallel._validate_accelerator(accelerator)
    if kind != "FSDP":
        return
    shape = parallel._get_mesh()
    facts["mesh"] = dict(zip(shape[0], shape[1], strict=True)) if shape else {}
    with feigned_ranks(world_size):
        device_mesh = parallel.build_device_mesh("cpu")
        facts["shard_group"] = torch.distributed.get_process_group_ranks(device_mesh["dp_shard_cp"].get_group())[:16]


def check_plugin(kind: str, folder: Path, facts: dict[str, Any]) -> None:
    """The plugin that ``Accelerator`` would make of the environment."""
    from accelerate import utils

    if kind == "FSDP":
        plugin = utils.FullyShardedDataParallelPlugin()
        facts |= {"fsdp_version": plugin.fsdp_version, "reshard_after_forward": plugin.reshard_after_forward}
    if kind == "DEEPSPEED" and find_spec("deepspeed") is None:
        facts["plugin"] = "not asked: deepspeed is not installed beside this Python"
    elif kind == "DEEPSPEED":
        with contextlib.chdir(folder):
            plugin = utils.DeepSpeedPlugin()
            plugin.set_mixed_precision(os.environ.get("ACCELERATE_MIXED_PRECISION", "no"))
            plugin.deepspeed_config_process()
        facts["zero_stage"] = plugin.zero_stage


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, text in request["files"].items():
            (folder / name).write_text(text, encoding="utf-8")
        yield "files"
        mesh = {name: int(size) for name, size in json.loads(request["training"])["mesh"].items()}
        variables: dict[str, str] = {}
        yield from launched_environment(folder / request["config"], variables, facts)
        compare(variables, request["environment"])
        yield "mesh"
        planned = math.prod(mesh.values())
        if planned != int(facts["num_processes"]):
            raise Refused(f"training.json plans {planned} ranks, the config {facts['num_processes']}")
        with mock.patch.dict(os.environ, variables):
            check_mesh(planned, facts["distributed_type"], mesh, facts)
            yield "plugin"
            check_plugin(facts["distributed_type"], folder, facts)
        if '"_class_name"' in request["model"]:
            yield "denoiser"
            check_denoiser(request["model"], int(request["parameters"]), facts)
        if request.get("adapters"):
            yield "adapters"
            check_adapters(request["adapters"], request["model"], folder, facts)


def check_denoiser(text: str, planned: int, facts: dict[str, Any]) -> None:
    """The class builds from the file, with as many parameters as planned."""
    if find_spec("diffusers") is None:
        facts["denoiser"] = "not asked: diffusers is not installed beside this Python"
        return
    import diffusers
    import torch

    values = json.loads(text)
    model_class = getattr(diffusers, str(values.pop("_class_name")), None)
    if model_class is None:
        raise Refused("diffusers has no class of this name")
    unknown = sorted(key for key in values if key not in inspect.signature(model_class.__init__).parameters)
    if unknown:  # from_config warns of them and goes on without
        raise Refused(f"{model_class.__name__} has no argument {', '.join(unknown)}")
    with torch.device("meta"):
        model = model_class.from_config(values)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != planned:
        raise Refused(f"{model_class.__name__} has {count:,} parameters, planned are {planned:,}")
    facts["parameters"] = count


def check_adapters(text: str, model_text: str, folder: Path, facts: dict[str, Any]) -> None:
    """PEFT reads the file, finds every target in the model, and makes what learns."""
    missing = [name for name in ("transformers", "peft") if find_spec(name) is None]
    if missing:
        facts["adapters"] = f"not asked: {' and '.join(missing)} not installed beside this Python"
        return
    import torch
    from peft import LoraConfig, get_peft_model  # type: ignore[import-not-found]  # in the overlay
    from transformers import AutoConfig, AutoModelForCausalLM

    (folder / "adapter_config.json").write_text(text, encoding="utf-8")
    config = LoraConfig.from_pretrained(str(folder))
    values = json.loads(model_text)
    with torch.device("meta"):
        base = AutoModelForCausalLM.from_config(AutoConfig.for_model(values.pop("model_type"), **values))
        model = get_peft_model(base, config)
    learns = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    missed = [each for each in config.target_modules if not any(f".{each}." in name for name, _ in learns)]
    if missed:
        raise Refused(f"the model has no {', '.join(sorted(missed))}")
    facts["trained_parameters"] = sum(parameter.numel() for _, parameter in learns)


def prepare(overlay: Path) -> None:
    """Variables of the one who asks are none of the plan's."""
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        del os.environ[name]


if __name__ == "__main__":
    serve(stages, prepare, ended=lambda printed: f"SystemExit: {usage(printed)}")
