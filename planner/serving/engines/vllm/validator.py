"""vLLM's own parser and configuration, without a device."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.validator import Validator
from planner.serving.engines.checking import unpack_wheel
from planner.serving.engines.vllm.words import RELEASE

_PARTS = {
    "cachetools": "8.0.2",
    "cloudpickle": "3.1.3",
    "compressed-tensors": "0.17.0",
    "distro": "1.9.0",
    "jiter": "0.19.0",
    "loguru": "0.7.3",
    "openai": "3.57.0",
    "openai-harmony": "0.0.8",
    "partial-json-parser": "0.2.1.1.post7",
    "pybase64": "1.5.1",
    "sniffio": "1.3.1",
}
"""What vLLM imports to read its arguments and to make a configuration; the rest is stubbed by the worker."""

VALIDATOR = Validator(
    name="vllm",
    default_version=RELEASE,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "vllm",
    request=lambda folder: {"flags": True},
    packages=lambda version: tuple(f"{name}=={release}" for name, release in _PARTS.items()),
    install=lambda folder, version: unpack_wheel(folder, f"vllm=={version}"),
    base_modules=("torch", "transformers"),
    environment=lambda overlay: {"CUDA_VISIBLE_DEVICES": ""},
)
"""Asked of no words it says its flags; what instances are told is asked by ``planner.serving.platforms.registry``."""
