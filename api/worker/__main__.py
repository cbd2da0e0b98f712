"""``python -m api.worker``: the process of an embedded worker.

Its standard input begins with one line of JSON, the fields of ``WorkerSettings``: the database's address holds a
password, and a command line can be read by everybody on the machine.  It ends when its standard input closes: whoever
started it is gone.
"""

from __future__ import annotations

import json
import sys

from api.worker.command import run_worker
from api.worker.settings import WorkerSettings


def main() -> int:
    """Run one worker."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # Whoever started it went before it had said everything.
        return 0
    return run_worker(WorkerSettings(**json.loads(line)), until_stdin_closes=True)


if __name__ == "__main__":
    sys.exit(main())
