"""The folder of a back-end's compiled operators, where a run that was stopped cannot block the next one.

torch compiles C++ extensions in the first process that asks, under a lock file that the others wait for without end; a
process that is killed leaves it behind.  Ours is a folder of its own, and a lock there that nobody has open is removed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

ENVIRONMENT_VARIABLE = "TORCH_EXTENSIONS_DIR"


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

    Does nothing in a folder that was named by the environment (others use it too), or where the system cannot tell.
    """
    if os.environ.get(ENVIRONMENT_VARIABLE) or not Path("/proc/self/fd").is_dir():
        return ()
    locks = [path for path in folder.glob("**/lock") if path.is_file()]
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
