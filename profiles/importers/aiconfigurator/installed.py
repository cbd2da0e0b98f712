"""The measured tables that the installed ``aiconfigurator-core`` package holds.

The package is only located, never imported: its data are files.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from profiles.errors import NotFound
from profiles.spelling import nearest_name

PACKAGE = "aiconfigurator_core"
DISTRIBUTION = "aiconfigurator-core"


def package_version() -> str:
    """Version of the installed package.  Raises NotFound with the command that installs it."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        raise NotFound(
            f"the package {DISTRIBUTION} is not installed; it holds the measured tables",
            where="profile import aiconfigurator",
            hint="pip install 'meshwright[aiconfigurator]'",
        ) from None


def systems() -> list[str]:
    """Systems with measured tables: a100_sxm, b200_sxm, h100_sxm, ..."""
    folder = _data_folder()
    return sorted(path.name for path in folder.iterdir() if any(path.rglob("*.parquet")))


def table_files(system: str) -> list[Path]:
    """All performance tables of one system, sorted.  Raises NotFound with the known systems."""
    known = systems()
    if system not in known:
        near = nearest_name(system, known)
        raise NotFound(
            f"AIConfigurator has no measured tables of '{system}'",
            where="--system",
            hint=(f"did you mean '{near}'? " if near else "") + "known: " + ", ".join(known),
        )
    return sorted((_data_folder() / system).rglob("*_perf.parquet"))


def _data_folder() -> Path:
    package_version()
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NotFound(
            f"the package {DISTRIBUTION} is damaged: {PACKAGE} cannot be found",
            where="profile import aiconfigurator",
            hint="pip install --force-reinstall 'meshwright[aiconfigurator]'",
        )
    return Path(next(iter(spec.submodule_search_locations))) / "systems" / "data"
