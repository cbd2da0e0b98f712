"""Where a validator's packages live: an overlay folder of their own, on top of the interpreter that runs us.

``$MESHWRIGHT_VALIDATORS`` (default: ``$XDG_CACHE_HOME/meshwright/validators``) holds a folder a validator and version.
Packages are installed without their dependencies and at exact versions: a back-end must not pull its CUDA stack, nor
replace the torch that is there.  Nothing of it is ever importable in our own process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from planner.backends.checking.validator import Validator
from planner.errors import ValidatorUnavailable

ENVIRONMENT_VARIABLE = "MESHWRIGHT_VALIDATORS"
INSTALL_TIMEOUT_S = 900.0
_STAMP = ".installed"


def overlays_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of all overlays."""
    given = os.environ if environment is None else environment
    if given.get(ENVIRONMENT_VARIABLE):
        return Path(given[ENVIRONMENT_VARIABLE]).absolute()
    cache = given.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: relative paths are to be ignored.
    root = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return root / "meshwright" / "validators"


def overlay(validator: Validator, version: str) -> Path:
    """The folder of one validator at one version, installed or not."""
    return overlays_folder() / f"{validator.name}-{version}-py{sys.version_info.major}.{sys.version_info.minor}"


def missing_modules(validator: Validator) -> tuple[str, ...]:
    """Modules that the interpreter itself lacks."""
    return tuple(name for name in validator.base_modules if importlib.util.find_spec(name) is None)


def is_ready(validator: Validator, version: str) -> bool:
    """Whether the validator can be started without installing anything."""
    if missing_modules(validator) or _other_version(validator, version):
        return False
    needs_nothing = validator.install is None and not validator.packages(version)
    return needs_nothing or (overlay(validator, version) / _STAMP).is_file()


def _other_version(validator: Validator, version: str) -> str:
    """The interpreter's own version where it must be, and is not, the one asked for; without a local suffix."""
    if not validator.of_interpreter:
        return ""
    found = importlib.metadata.version(validator.of_interpreter).partition("+")[0]
    return "" if found == version else found


def make_ready(validator: Validator, version: str) -> Path:
    """Install what is missing; returns the overlay.  Whole or not at all.  Raises ValidatorUnavailable."""
    folder = overlay(validator, version)
    if is_ready(validator, version):
        return folder
    missing = missing_modules(validator)
    if missing:
        raise ValidatorUnavailable(
            f"{validator.name} is checked with {', '.join(missing)}, which this Python does not have",
            where=f"--with {validator.name}",
            hint="pip install 'meshwright[torch]'" if "torch" in missing else f"pip install {' '.join(missing)}",
        )
    other = _other_version(validator, version)
    if other:
        raise ValidatorUnavailable(
            f"{validator.name} is checked with the {validator.of_interpreter} of this Python, which is {other}",
            where=f"--with {validator.name}=={version}",
            hint=f"--with {validator.name}=={other}, or pip install {validator.of_interpreter}=={version}",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        if validator.install is not None:
            validator.install(staging, version)
        if validator.packages(version):
            pip_install(staging, validator.packages(version), validator.name)
        (staging / _STAMP).write_text("".join(f"{each}\n" for each in validator.packages(version)), encoding="utf-8")
        staging.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def pip_install(folder: Path, requirements: tuple[str, ...], name: str) -> None:
    """``pip install --target`` without dependencies.  Raises ValidatorUnavailable with pip's last words.

    The check of the Python version is off: megatron-core 0.19 asks for 3.12 and runs its argument parser on 3.11.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--ignore-requires-python", "--target", str(folder), *requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(name, str(error)) from error
    if done.returncode:
        raise _unavailable(name, next(iter(done.stderr.strip().splitlines()[-1:]), f"exit status {done.returncode}"))


def _unavailable(name: str, reason: str) -> ValidatorUnavailable:
    return ValidatorUnavailable(
        f"{name} could not be installed: {reason}",
        where=f"--with {name}",
        hint=f"name a release that the package index has, or fill ${ENVIRONMENT_VARIABLE} where one is reached",
    )
