"""The heartbeat of a worker: a row of its own, whose ``beat`` it moves every few seconds.

The row lies on a queue that nobody serves, so DBOS leaves it alone.  A worker that was taken for dead (stopped, cut
off) finds its row gone and writes a new one; by then its jobs run elsewhere, and what it still writes to them is
refused.  The beat is a counter, not a time: who watches it needs no clock but its own.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from dataclasses import dataclass

from dbos import DBOSClient
from sqlalchemy.exc import SQLAlchemyError

from api.jobs.system_database import WORKERS

PRESENCE = "worker"

log = logging.getLogger("meshwright.worker")


@dataclass(frozen=True, slots=True)
class Beat:
    """How often a worker has moved, since which row of it, and how long it may stand still."""

    row: str
    count: int
    lease_s: float


def executor_name() -> str:
    """A name that no other worker has had: host, process, and something random, because process ids come back."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"


def beats(client: DBOSClient) -> dict[str, Beat]:
    """The newest beat of every worker that has a row."""
    rows = client.list_workflows(queue_name=WORKERS, status="ENQUEUED", load_input=False, load_output=False)
    found = {}
    for row in rows:
        notes = row.attributes or {}
        found[str(notes["executor"])] = Beat(row.workflow_id, int(notes["beat"]), float(notes["lease_s"]))
    return found


class Presence:
    """The row of one worker."""

    def __init__(self, client: DBOSClient, executor: str, *, every_s: float, lease_s: float) -> None:
        self._client, self._executor, self._every_s, self._lease_s = client, executor, every_s, lease_s
        self._row, self._count, self._rows, self._refused = "", 0, 0, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Write the row, then keep it moving.  Raises SQLAlchemyError when the database is away now."""
        self._appear()
        self._thread.start()

    def count_refusal(self) -> None:
        """A write of this worker was refused, because its job runs elsewhere; the next beat says so."""
        self._refused += 1

    def stop(self) -> None:
        """Take the row away: nothing of this worker is left to be found."""
        self._end.set()
        self._thread.join(self._every_s + 5)
        try:
            self._client.delete_workflow(self._row)
        except SQLAlchemyError:
            log.warning("the worker's row could not be removed; others find it unmoved")

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            try:
                self._beat()
            except SQLAlchemyError as error:
                log.warning("no heartbeat, the database is away: %s", type(error).__name__)

    def _beat(self) -> None:
        rows = self._client.list_workflows(workflow_ids=[self._row], load_input=False, load_output=False)
        if not rows:
            log.warning("this worker was taken for dead; its jobs run elsewhere")
            self._appear()
            return
        self._count += 1
        self._client.update_workflow_attributes(self._row, self._notes())

    def _appear(self) -> None:
        self._rows += 1
        self._row = f"{self._executor}-{self._rows}"
        self._client.enqueue(
            {
                "queue_name": WORKERS,
                "workflow_name": PRESENCE,
                "workflow_id": self._row,
                "attributes": self._notes(),
            }
        )

    def _notes(self) -> dict[str, str | float]:
        said = {"beat": self._count, "lease_s": self._lease_s, "refused": self._refused}
        return {"executor": self._executor, **said}
