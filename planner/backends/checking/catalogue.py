"""Which validators are there?  A plain dict; a validator's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Validator
from planner.errors import DocumentInvalid

VALIDATORS: dict[str, str] = {
    "accelerate": "planner.backends.accelerate.validator",
    "deepspeed": "planner.backends.deepspeed.validator",
    "megatron-bridge": "planner.backends.megatron_bridge.validator",
    "torch": "planner.backends.native.validator",
    "megatron-core": "planner.backends.megatron.validator",
    "torchtitan": "planner.backends.torchtitan.validator",
    "mindspeed": "planner.backends.mindspeed.validator",
    "torchrun": "planner.backends.launch.validators.torchrun",
    "maxtext": "planner.backends.maxtext.validator",
    "jax": "planner.backends.maxtext.step_validator",
    "sbatch": "planner.backends.launch.validators.sbatch",
    "mpirun": "planner.backends.launch.validators.mpirun",
    "kubernetes-validate": "planner.backends.launch.validators.kubernetes_validate",
    "kubeflow-trainer-api": "planner.backends.launch.validators.kubeflow_trainer_api",
    "kubeflow-training": "planner.backends.launch.validators.kubeflow_training",
    "ray": "planner.backends.launch.validators.ray",
}
"""Name -> module that has ``VALIDATOR``."""


def validator(name: str) -> Validator:
    """The validator of that name.  Raises DocumentInvalid for a name that is not in ``VALIDATORS``."""
    path = VALIDATORS.get(name)
    if path is None:
        hint = f"one of {', '.join(VALIDATORS)}, with ==VERSION for another release"
        raise DocumentInvalid(f"no validator is called {name!r}", where="--with", hint=hint)
    found = import_module(path).VALIDATOR
    assert isinstance(found, Validator)  # our own table, not input
    return found


def applicable(folder: EmittedFolder) -> tuple[Validator, ...]:
    """Every validator that has something to say about the folder, the target's before the launcher's."""
    return tuple(each for each in map(validator, VALIDATORS) if each.applies(folder))


def parse_requirement(text: str) -> tuple[Validator, str]:
    """``megatron-core==0.19.2`` or ``megatron-core``.  Raises DocumentInvalid."""
    name, separator, version = (part.strip() for part in text.partition("=="))
    found = validator(name)
    if (separator and not version) or any(letter in version for letter in "<>=!~ /\\"):
        hint = f"write {name}=={found.default_version}, or {name}"
        raise DocumentInvalid(f"{text!r} does not name one version", where="--with", hint=hint)
    return found, version or found.default_version
