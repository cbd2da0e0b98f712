"""Which back-end does not go with which launcher?  A table, each entry with its reason."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndName, LauncherName
from planner.errors import BackEndRefused

_TORCH_ONLY = "it hands the job to torch's process group, and MaxText is JAX"
REFUSED: dict[tuple[BackEndName, LauncherName], tuple[str, str]] = {
    ("maxtext", "trainjob"): (
        "the runtime torch-distributed starts torch jobs, and MaxText is JAX",
        "use --launcher kubernetes, a JobSet, which is what MaxText's own jobs are",
    ),
    ("maxtext", "pytorchjob"): (_TORCH_ONLY, "use --launcher kubernetes"),
    ("maxtext", "ray-train"): (_TORCH_ONLY, "use --launcher ray"),
    ("maxtext", "ascendjob"): ("MaxText runs on TPU and GPU, not on Ascend", "use --backend mindspeed"),
    ("mindspeed", "ray-train"): (
        "Ray Train shows all devices of a node to each of its workers only for NVIDIA, and MindSpeed runs on Ascend",
        "use --launcher ray or ascendjob",
    ),
}
"""(back-end, launcher) -> why not, and what instead.  What depends on the devices is refused by the launcher itself."""


def demand_pair(backend: BackEndName, launcher: LauncherName) -> None:
    """Raises BackEndRefused for a pair of ``REFUSED``."""
    found = REFUSED.get((backend, launcher))
    if found:
        reason, hint = found
        raise BackEndRefused(f"{backend} cannot be started by {launcher}: {reason}", where="--launcher", hint=hint)
