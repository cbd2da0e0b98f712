"""``python -m api.worker SETTINGS``: the process of an embedded worker; ``SETTINGS`` is JSON of ``WorkerSettings``.

It ends when its standard input closes: whoever started it is gone.
"""

from __future__ import annotations

import json
import sys

from api.worker.command import run_worker
from api.worker.settings import WorkerSettings


def main(arguments: list[str]) -> int:
    """Run one worker."""
    return run_worker(WorkerSettings(**json.loads(arguments[0])), until_stdin_closes=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
