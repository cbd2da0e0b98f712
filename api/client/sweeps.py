"""Requests about many questions at once: submit, look, watch, wait, list, cancel (``client.sweeps``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from api.client.errors import SweepUnfinished
from api.client.question_body import Asked, body_of, new_key, path_part
from api.client.transport import NOT_MODIFIED, Transport, read_answer
from api.wire.sweeps import UNANSWERED, SweepPage, SweepProgress, SweepSummary, SweepView
from planner.errors import MeshwrightError
from planner.operations.sweep import Swept

Progress = Callable[[SweepProgress], None]
"""Hears how many cells are where.  May raise to stop waiting; the sweep goes on."""
FIRST_POLL_S, LONGEST_POLL_S = 0.2, 2.0
MOST_ROWS = 500


class Sweeps:
    """The part of a client that reads ``/v1/sweeps``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, request: Asked, *, idempotency_key: str | None = None) -> SweepSummary:
        """Ask every combination (``api.wire.sweeps.SweepRequest``).  The same content is the same sweep.

        Asked again, it goes on: cells that failed or were cancelled are tried again.
        """
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        return self._transport.ask(SweepSummary, "POST", "/v1/sweeps", body=body_of(request), headers=headers)

    def swept(self, request: Asked, progress: Callable[[int, int], None] | None = None) -> Swept:
        """The answer of a sweep, watched until it has ended, or something else ends it.

        ``progress`` hears how many of the cells are answered.
        """
        view: SweepView | None = None
        ended: MeshwrightError | KeyboardInterrupt | None = None
        try:
            for view in self.watch(self.submit(request).sweep_id):
                if progress is not None:
                    waiting = sum(cell.outcome in UNANSWERED or cell.outcome == "missing" for cell in view.cells)
                    progress(len(view.cells) - waiting, len(view.cells))
        except (MeshwrightError, KeyboardInterrupt) as error:
            ended = error
        address = self._transport.address
        return Swept(
            rows=[] if view is None else [cell.model_dump(mode="json", exclude={"job_id"}) for cell in view.cells],
            kept="" if view is None else f"sweep {view.sweep_id} is kept at {address}",
            goes_on=f"the sweep goes on at {address}; the same command shows it",
            ended=ended,
        )

    def get(self, sweep_id: str) -> SweepView:
        """The sweep with its cells, as it stands."""
        return self._transport.ask(SweepView, "GET", _of(sweep_id))

    def list(self, *, page: int = 50) -> Iterator[SweepSummary]:
        """Every sweep, newest first; pages are fetched as they are needed."""
        params: dict[str, str | int] = {"limit": min(page, MOST_ROWS)}
        while True:
            found = self._transport.ask(SweepPage, "GET", "/v1/sweeps", params=params)
            yield from found.sweeps
            if found.next is None:
                return
            params["after"] = found.next

    def cancel(self, sweep_id: str) -> SweepSummary:
        """End a sweep; its answers are kept.  Harmless for one that has ended."""
        return self._transport.ask(SweepSummary, "POST", f"{_of(sweep_id)}:cancel")

    def watch(self, sweep_id: str, *, wait_s: float | None = None) -> Iterator[SweepView]:
        """The sweep each time something has happened, until it has ended.  Raises SweepUnfinished after ``wait_s``."""
        end_s = None if wait_s is None else time.monotonic() + wait_s
        version, pause_s = "", FIRST_POLL_S
        while True:
            headers = {"If-None-Match": version} if version else {}
            answer = self._transport.send("GET", _of(sweep_id), headers=headers)
            if answer.status_code != NOT_MODIFIED:
                version, pause_s = answer.headers.get("etag", ""), FIRST_POLL_S
                view = read_answer(SweepView, answer.content)
                yield view
                if view.ended_at is not None:
                    return
            if end_s is not None and time.monotonic() >= end_s:
                raise SweepUnfinished(sweep_id, wait_s or 0.0)
            self._transport.patience.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_POLL_S)

    def wait(self, sweep_id: str, *, progress: Progress | None = None, wait_s: float | None = None) -> SweepView:
        """The sweep once it has ended.  Raises SweepUnfinished after ``wait_s``."""
        view: SweepView | None = None
        for view in self.watch(sweep_id, wait_s=wait_s):
            if progress is not None:
                progress(view.progress)
        if view is None:
            raise RuntimeError("a sweep that is watched is seen at least once")
        return view


def _of(sweep_id: str) -> str:
    return f"/v1/sweeps/{path_part(sweep_id, 'sweep')}"
