"""Writes a plan as an Accelerate run: config YAML, the model's JSON, one script, the launcher's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.backends.accelerate.config import (
    CONFIG_FILE,
    accelerate_config,
    config_text,
    environment,
)
from planner.backends.accelerate.denoiser_script import of_denoiser
from planner.backends.accelerate.seq2seq_script import of_encoder_decoder
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.training_document import TRAINING_FILE, training_document
from planner.backends.accelerate.vision_script import of_vision_language
from planner.backends.accelerate.way import way
from planner.backends.deepspeed.adapters import ADAPTER_FILE, PEFT_VERSION, adapter_text
from planner.backends.deepspeed.config import CONFIG_FILE as DEEPSPEED_FILE
from planner.backends.deepspeed.config import ds_config
from planner.backends.deepspeed.denoiser_config import drops_last_text
from planner.backends.deepspeed.model_config import model_config
from planner.backends.deepspeed.training_document import training_text
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.deepspeed.write import ALLOCATOR, MODEL_CONFIG_FILE, routing_assumptions
from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.launch.spec import launch_spec
from planner.backends.rules.optimizer_recipe import filled
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan

TRAIN_SCRIPT = "train_accelerate.py"


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when Accelerate cannot run the plan.
    """
    findings = violations(rule_input(plan))
    if findings:
        raise refused("Accelerate", "accelerate", findings)
    config = accelerate_config(plan, launch_spec(plan, TRAIN_SCRIPT, {}).num_nodes)
    files = {
        CONFIG_FILE: config_text(config),
        MODEL_CONFIG_FILE: _text(model_config(plan.problem.model)),
        TRAINING_FILE: training_text(training_document(plan)),
        TRAIN_SCRIPT: _script_of(plan),
    }
    versions = {"accelerate": version, "torch": "2.8 or newer"}
    versions |= {"diffusers": "0.42 or newer"} if plan.problem.model.denoiser else {"transformers": "5"}
    training = plan.problem.workload.trained
    if training.adapters:
        files[ADAPTER_FILE] = adapter_text(training)
        versions["peft"] = PEFT_VERSION
    if training.kind == "qlora":
        versions["bitsandbytes"] = "0.48 or newer"
    if plan.problem.workload.optimizer == "adam_8bit":
        versions["torchao"] = "0.18 or newer"
    if way(plan.chosen()) == "DEEPSPEED":
        files[DEEPSPEED_FILE] = _text(ds_config(plan))
        versions["deepspeed"] = DEEPSPEED_VERSION
    return BackEndFiles(
        files=files,
        script=TRAIN_SCRIPT,
        version=version,
        versions=versions,
        environment={**environment(config), **ALLOCATOR},
        assumptions=_assumptions(plan),
    )


def training_script() -> str:
    """The text of ``train_accelerate.py``, a data file: this package must not import torch."""
    return filled((Path(__file__).parent / f"{TRAIN_SCRIPT}.txt").read_text(encoding="utf-8"))


def _script_of(plan: Plan) -> str:
    """The script, as it trains this kind of model."""
    model = plan.problem.model
    if model.denoiser is not None:
        unused = way(plan.chosen()) == "MULTI_GPU" and drops_last_text(model)
        return of_denoiser(training_script(), model.denoiser.class_name, unused, plan.chosen().cp > 1)
    if model.towers:
        return of_vision_language(training_script())
    return of_encoder_decoder(training_script()) if model.encoder else training_script()


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _assumptions(plan: Plan) -> tuple[str, ...]:
    s, model = plan.chosen(), plan.problem.model
    lines = [
        "Weights are random and the data synthetic; the script marks where yours go.",
        f"accelerate launch --config_file {CONFIG_FILE} {TRAIN_SCRIPT} starts the same run (more nodes: add"
        " --machine_rank, --main_process_ip and --main_process_port).",
    ]
    if model.denoiser is None:
        about = "Rope scaling and routing are as published; initialisation takes the transformers class's default."
        lines += [about, *routing_assumptions(model)]
    else:
        lines.append("Latents and text states are made beforehand; the loss is that of flow matching.")
    if model.towers:
        lines.append("Images are synthetic, at the beginning of each sample; every rank runs the tower on its own.")
    if way(s) in ("FSDP", "MULTI_GPU", "NO"):
        lines.append("Accelerate keeps weights and optimizer states in fp32 and computes in the plan's precision.")
    if way(s) in ("MULTI_GPU", "NO"):
        lines.append("DDP accumulates and reduces gradients in fp32.")
    training = plan.problem.workload.trained
    if training.adapters:
        lines.append(f"{ADAPTER_FILE} is PEFT's own: alpha is twice the rank, dropout 0.")
    if training.kind == "qlora":
        lines.append("A quantised base is made of a checkpoint: set MODEL_PATH.")
    if training.task != "language_model":
        lines.append(f"The {training.task} loss is in {TRAIN_SCRIPT}; its pairs are synthetic.")
    return tuple(lines)
