"""Programs of Debian packages for a validator, without installing them: ``apt-get download`` and ``dpkg -x``.

Nothing is installed and nothing runs as root: the packages are unpacked into the overlay and run from there.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from planner.errors import ValidatorUnavailable

TIMEOUT_S = 300.0


def unpack(folder: Path, packages: tuple[str, ...], first_version: str, name: str) -> None:
    """Unpack the packages into ``folder``.

    ``first_version`` is the upstream release that the first package must have: a package archive keeps one release.
    Raises ValidatorUnavailable.
    """
    for program in ("apt-get", "apt-cache", "dpkg"):
        if shutil.which(program) is None:
            raise _unavailable(name, f"there is no {program} here", "this check needs a Debian or Ubuntu system")
    found = _candidate(packages[0], name)
    upstream = found.partition(":")[2] or found
    if not upstream.startswith(f"{first_version}-"):
        reason = f"the package archive has {packages[0]} {upstream}, not {first_version}"
        raise _unavailable(name, reason, f"--with {name}=={_release(upstream)}")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _run(["apt-get", "download", "--quiet", *packages], scratch, name)
        for package in sorted(Path(scratch).glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(folder)], scratch, name)


def _candidate(package: str, name: str) -> str:
    for line in _run(["apt-cache", "policy", package], ".", name).splitlines():
        word, _, version = line.strip().partition(": ")
        if word == "Candidate" and version != "(none)":
            return version
    raise _unavailable(name, f"the package archive has no {package}", "run `apt-get update` as root")


def _release(version: str) -> str:
    return version.rpartition("-")[0] or version


def _run(command: list[str], folder: str, name: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(name, str(error), "see the message") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or [f"{command[0]} failed"]
        raise _unavailable(name, lines[0], "run `apt-get update` as root where the lists are old")
    return done.stdout


def _unavailable(name: str, reason: str, hint: str) -> ValidatorUnavailable:
    return ValidatorUnavailable(f"{name} could not be installed: {reason}", where=f"--with {name}", hint=hint)
