"""What the validators of engines share: a wheel without its kernels, the checkpoint's ``config.json``, requests.

The wheels are large for their CUDA kernels (vLLM 0.33.0: 336 MB packed, 837 MB unpacked), which no parser needs: they
are unpacked without compiled files, which leaves 119 MB of vLLM.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.environment import INSTALL_TIMEOUT_S
from planner.backends.deepspeed.model_config import model_config
from planner.errors import ValidatorUnavailable
from planner.model.spec import ModelSpec
from planner.serving.engines.engine import InstanceCommand, Served
from planner.serving.words import WeightFormat

_COMPILED = (".so", ".cubin", ".cu", ".cuh", ".h", ".hpp", "/vllm-rs")
_STORED: dict[WeightFormat, dict[str, Any]] = {
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic"},
    "fp8_block": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]},
    "mxfp4": {"quant_method": "mxfp4"},
    "int8": {"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False, "sym": True},
    "int4": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
}
"""``quantization_config`` of checkpoints, as their usual makers write it."""
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "phi3": "Phi3ForCausalLM",
}
"""``architectures`` of a family's ``config.json``, by which an engine finds its class."""


def unpack_wheel(folder: Path, requirement: str) -> None:
    """Download the wheel of a requirement and unpack it without what is compiled.  Raises ValidatorUnavailable."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", scratch, requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unavailable(requirement, str(error)) from error
        if done.returncode:
            raise _unavailable(requirement, next(iter(done.stderr.strip().splitlines()[-1:]), "pip failed"))
        for wheel in Path(scratch).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder, [name for name in packed.namelist() if not name.endswith(_COMPILED)])


def _unavailable(requirement: str, reason: str) -> ValidatorUnavailable:
    return ValidatorUnavailable(
        f"{requirement} could not be installed: {reason}",
        where=f"--with {requirement}",
        hint="fill the folder of validators where a package index is reached: make serving-targets",
    )


def checkpoint_config(model: ModelSpec, served: Served) -> dict[str, Any]:
    """The ``config.json`` beside the checkpoint, as far as the model and its formats say it.

    Raises DocumentInvalid for a family without a class of ``transformers``.
    """
    config = dict(model_config(model))
    config.setdefault("architectures", [_CLASSES.get(model.family, "")])
    config.setdefault("torch_dtype", "bfloat16")
    if model.mtp is not None:
        config["num_nextn_predict_layers"] = model.mtp.num_layers
    stored = served.weights if served.weights != "bf16" else served.of_experts
    return config if stored == "bf16" else {**config, "quantization_config": _STORED[stored]}


def runs_of(name: str, command: InstanceCommand, num_devices: int, skipped: int) -> Iterator[dict[str, Any]]:
    """What the first and the last node of an instance start, without the first ``skipped`` words (program, model)."""
    for rank in sorted({0, command.num_nodes - 1}):
        of = f"{name}, node {rank}" if command.num_nodes > 1 else name
        yield {"of": of, "words": list(command.of_node(rank)[skipped:]), "num_devices": num_devices}
