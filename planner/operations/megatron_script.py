"""A launch script of Megatron-LM as the model: it also says the workload, the strategy and the devices.

So ``meshwright estimate --model train.sh --cluster dgx-h100`` predicts the run that a person has today, and
``plan`` with the same words finds a better one.  Flags always win over the script.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.megatron_args import MegatronJob

SUFFIXES = frozenset({".sh", ".bash", ".args", ".txt", ".slurm", ".sbatch"})


def megatron_script(reference: str) -> MegatronJob | None:
    """The job that a script describes; None when ``reference`` is no script.  Raises DocumentInvalid, NotFound."""
    path = Path(reference)
    if path.suffix.lower() not in SUFFIXES:
        return None
    from planner.model.megatron_args import megatron_job
    from planner.operations.reading import read_text

    return megatron_job(read_text(path), path.stem, str(path))


def script_strategy(job: MegatronJob) -> dict[str, Any]:
    """Strategy fields as the script means them: what Megatron-LM has off by default is off."""
    from planner.model.megatron_strategy import with_what_is_off

    return with_what_is_off(job.strategy)
