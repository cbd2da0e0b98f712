"""The validators of launchers: from an emitted folder to what the launcher's own parser is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator


def launcher_validators() -> tuple[Validator, ...]:
    """The validators of all launchers."""
    from planner.backends.checking.launchers import (
        kubeflow_trainer_api,
        kubeflow_training,
        kubernetes_validate,
        mpirun,
        ray,
        sbatch,
        torchrun,
    )

    modules = (torchrun, sbatch, mpirun, kubernetes_validate, kubeflow_trainer_api, kubeflow_training, ray)
    return tuple(each.VALIDATOR for each in modules)
