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
        import planner.store.repository  # noqa: F401  # what takes long of opening one
        from planner.store import open_store

        os.close(self._write)
        with os.fdopen(self._read, "rb") as sent:
            if sent.read(1) != _OPEN:
                return False
            with open_store(self._database) as store:
                store.save_plan(*pickle.load(sent))
        return True
