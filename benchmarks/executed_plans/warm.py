"""What the ranks of each back-end import, imported once for a whole corpus (``tests.warm_ranks.python``)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from planner.backends.accelerate.validator import VALIDATOR as ACCELERATE
from planner.backends.checking.environment import make_ready
from planner.backends.maxtext.tiny_run import interpreter
from planner.backends.ranks.extension_cache import ENVIRONMENT_VARIABLE, extension_folder
from tests.warm_ranks.python import warm_python

_TORCH = (
    "torch.distributed.run",
    "torch.distributed.elastic.multiprocessing.api",
    "torch.distributed.tensor.parallel",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.utils.checkpoint",
)
_COMPILED = ("torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.compile_fx")
_CHECKPOINTS = ("torch.distributed.checkpoint", "torch.distributed.checkpoint.state_dict")
_TRANSFORMERS = (
    "transformers.models.auto.modeling_auto",
    *(f"transformers.models.{name}.modeling_{name}" for name in ("llama", "mixtral", "qwen3_moe", "gpt2", "mistral")),
)
MODULES: dict[str, tuple[str, ...]] = {
    "native": _TORCH,
    "megatron": (*_TORCH, *_CHECKPOINTS, "torch._dynamo", "einops"),
    "torchtitan": (*_TORCH, *_CHECKPOINTS, *_COMPILED, "torch.nn.attention.flex_attention"),
    "accelerate": (*_TORCH, *_CHECKPOINTS, "accelerate", *_TRANSFORMERS),
    "maxtext": ("maxtext.trainers.pre_train.train", "maxtext.input_pipeline.input_pipeline_interface"),
    "deepspeed": (*_TORCH, "deepspeed", "deepspeed.pipe", *_TRANSFORMERS),
}


@contextlib.contextmanager
def warm(backend: str) -> Iterator[None]:
    """Every launch inside shares its imports.  Raises BackEndRefused where they fail."""
    if backend not in MODULES:
        yield
        return
    with warm_python(MODULES[backend], _variables(backend), interpreter() if backend == "maxtext" else ""):
        yield


def _variables(backend: str) -> dict[str, str]:
    """What its runner gives to the ranks, as far as imports look at it."""
    if backend == "maxtext":
        return {"JAX_PLATFORMS": "cpu"}
    if backend not in ("accelerate", "deepspeed"):
        return {"PYTHONDONTWRITEBYTECODE": "1"}
    given = {"DS_ACCELERATOR": "cpu", "TRANSFORMERS_OFFLINE": "1", ENVIRONMENT_VARIABLE: str(extension_folder())}
    if backend == "accelerate":
        packages = str(make_ready(ACCELERATE, ACCELERATE.default_version))
        given["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))
    return given
