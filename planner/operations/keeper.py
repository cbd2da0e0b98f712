"""A child process that opens the database while this one searches, and stores the plan that is found.

Opening one (SQLAlchemy, the schema) takes as long as a small search, which need not wait for it.  A child that cannot
store the plan leaves it to the parent, which meets the same error.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.search.beside import Beside

if TYPE_CHECKING:
    from planner.plan.plan import Plan


class Keeper:
    """Stores one plan in the database at ``database`` (``planner.store.open_store``)."""

    def __init__(self, database: str | None) -> None:
        self._database, self._parent = database, os.getpid()
        self._read, self._write = os.pipe()
        self._kept = Beside(self._keep, forks=True)
        os.close(self._read)

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
        with open_store(self._database) as store, os.fdopen(self._read, "rb") as sent:
            store.save_plan(*pickle.load(sent))
        return True
