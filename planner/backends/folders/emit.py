"""How is a plan written down for its own back-end?  A plan is of one back-end's space, so its files say all of it."""

from __future__ import annotations

from planner.backends.asked import software_of
from planner.backends.emission.emission import Emission, LauncherName
from planner.backends.folders.assemble import launch_again
from planner.backends.launch.launchers import demand_pair
from planner.backends.launch.settings import LaunchSettings
from planner.backends.registry import files_of
from planner.plan import Plan


def emit_plan(
    plan: Plan,
    launcher: LauncherName,
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> Emission:
    """Files and launch command of a plan.

    Raises NotFound where no files can be written for its back-end, BackEndRefused when the launcher does not go with
    it, DocumentInvalid for settings that do not fit the plan.
    """
    software = software_of(plan)
    files = files_of(software)
    demand_pair(software.name, launcher)
    return launch_again(files.write(plan, launcher, software.release.version), settings)
