"""A child process that opens the database while this one searches, and stores the plan that is found.

Importing what opens one (SQLAlchemy) takes as long as reading a question and a small search: the child is started at
once and imports beside them.  It touches no database before the question is known to be one.  A child that cannot store
the plan leaves it to the parent, which meets the same error.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.search.beside import Beside

if TYPE_CHECKING:
    from planner.plan.plan import Plan


_OPEN = b"o"


def _get_ready() -> None:
    """All that storing a plan takes beside the plan and the database: imports, the software's name, serialisers."""
    import planner.store.repository  # noqa: F401
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.store.signature import software_signature
    from profiles.document import Document

    software_signature()
    Plan.model_rebuild()
    Problem.model_rebuild()
    for part in ("model", "cluster", "workload", "constraints", "objective"):
        document = Problem.model_fields[part].annotation
        if isinstance(document, type) and issubclass(document, Document):
            document.model_rebuild()


class Keeper:
    """Stores one plan in the database at ``database`` (``planner.store.open_store``)."""

    def __init__(self, database: str | None) -> None:
        self._database, self._parent = database, os.getpid()
        self._read, self._write = os.pipe()
        self._kept = Beside(self._keep, forks=True)
        os.close(self._read)

    def open(self) -> None:
        """Let the child open the database."""
        with suppress(BrokenPipeError):
            os.write(self._write, _OPEN)

    def save(self, plan: Plan, wall_s: float | None) -> bool:
        """Hand the plan over and wait: whether it is stored."""
        with suppress(BrokenPipeError), os.fdopen(self._write, "wb") as sent:
            pickle.dump((plan, wall_s), sent)
        self._write = -1
        return self._kept.answer

    def stop(self) -> None:
        """End the child where no plan was found."""
        self._kept.stop()
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def _keep(self) -> bool:
        if os.getpid() == self._parent:
            return False
        from planner.store import open_store

        os.close(self._write)
        _get_ready()
        with os.fdopen(self._read, "rb") as sent:
            if sent.read(1) != _OPEN:
                return False
            with open_store(self._database) as store:
                store.save_plan(*pickle.load(sent))
        return True
