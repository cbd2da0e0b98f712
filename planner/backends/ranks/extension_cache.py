"""The folder of a back-end's compiled operators, where a run that was stopped cannot block the next one.

torch compiles C++ extensions in the first process that asks, under a lock file that the others wait for without end; a
process that is killed leaves it behind, and everybody then waits for nobody.  A lock that no process has open is
removed: at once in a folder of ours, and in one that the environment names when it is older than any build.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ENVIRONMENT_VARIABLE = "TORCH_EXTENSIONS_DIR"
LONGEST_BUILD_S = 1800.0
"""DeepSpeed's CPU communication takes half a minute, six where eight processes share two cores."""


def extension_folder() -> Path:
    """``$TORCH_EXTENSIONS_DIR``, else ``$XDG_CACHE_HOME/meshwright/torch-extensions``; made where it is missing."""
    given = os.environ.get(ENVIRONMENT_VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    folder = Path(given).absolute() if given else root / "meshwright" / "torch-extensions"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_stale_locks(folder: Path) -> tuple[Path, ...]:
    """Remove lock files that no process has open; returns them.

    In a folder that the environment names, which another machine may use too, only those older than
    ``LONGEST_BUILD_S``.  Does nothing where the system cannot tell.
    """
    if not Path("/proc/self/fd").is_dir():
        return ()
    youngest = time.time() - (LONGEST_BUILD_S if os.environ.get(ENVIRONMENT_VARIABLE) else 0.0)
    locks = [path for path in folder.glob("**/lock") if path.is_file() and path.stat().st_mtime <= youngest]
    held = _open_files() if locks else set()
    stale = tuple(path for path in locks if str(path.resolve()) not in held)
    for path in stale:
        with contextlib.suppress(OSError):
            path.unlink()
    return stale


def _open_files() -> set[str]:
    """Paths that any process which we may look at has open."""
    found: set[str] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                for link in (process / "fd").iterdir():
                    with contextlib.suppress(OSError):
                        found.add(os.readlink(link))
    return found
