"""Starts a validator's script: ``python start_script.py SCRIPT OVERLAY``.

The script runs as if it had been started itself, with the overlay as its only argument.  Behind everything else in the
search path stands our own root, so that it can import ``planner.backends.checking.answers``.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    sys.path.append(str(Path(__file__).parents[3]))
    runpy.run_path(sys.argv[0], run_name="__main__")
