"""SGLang's own parser and checks, without a device."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.validator import Validator
from planner.serving.engines.checking import unpack_wheel
from planner.serving.engines.sglang.words import RELEASE

_PARTS = {
    "cachetools": "8.0.2",
    "cloudpickle": "3.1.3",
    "compressed-tensors": "0.17.0",
    "dill": "0.4.1",
    "distro": "1.9.0",
    "gguf": "0.19.0",
    "jiter": "0.19.0",
    "loguru": "0.7.3",
    "openai": "3.57.0",
    "orjson": "3.11.8",
    "partial-json-parser": "0.2.1.1.post7",
    "sniffio": "1.3.1",
}
"""What SGLang imports to read and to check its arguments; the rest is stubbed by the worker."""

VALIDATOR = Validator(
    name="sglang",
    default_version=RELEASE,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "sglang",
    request=lambda folder: {"flags": True},
    packages=lambda version: tuple(f"{name}=={release}" for name, release in _PARTS.items()),
    install=lambda folder, version: unpack_wheel(folder, f"sglang=={version}"),
    base_modules=("torch", "transformers"),
    environment=lambda overlay: {"CUDA_VISIBLE_DEVICES": ""},
)
"""Asked of no words it says its flags; what instances are told is asked by ``planner.serving.platforms.registry``."""
