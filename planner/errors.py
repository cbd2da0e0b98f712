"""Errors of planning, hung on the tree of ``profiles.errors``.

MeshwrightError
├── DocumentInvalid, NotFound, Conflict, ProfileMissing   (profiles.errors)
├── NoFeasiblePlan                  exit 5   nothing fits; carries the binding constraint and a relaxation
├── BudgetSpent                     exit 6   the time limit ended before any plan was found
├── BackEndRefused                  exit 8   a back-end cannot run the configuration
└── ValidatorUnavailable            exit 3   a back-end's own validator cannot be installed or started
"""

from __future__ import annotations

from collections.abc import Mapping

from profiles.errors import Conflict, DocumentInvalid, MeshwrightError, NotFound, ProfileMissing

__all__ = [
    "BackEndRefused",
    "BudgetSpent",
    "Conflict",
    "DocumentInvalid",
    "MeshwrightError",
    "NoFeasiblePlan",
    "NotFound",
    "ProfileMissing",
    "ValidatorUnavailable",
]


class NoFeasiblePlan(MeshwrightError):
    """No strategy in the declared space satisfies the constraints."""

    slug = "no-feasible-plan"
    exit_code = 5
    http_status = 422

    def __init__(
        self,
        what: str,
        *,
        binding: str,
        relaxations: tuple[str, ...] = (),
        pruned: Mapping[str, int] | None = None,
        where: str | None = None,
    ) -> None:
        super().__init__(what, where=where, hint="; or ".join(relaxations) or None)
        self.binding = binding
        self.relaxations = relaxations
        self.pruned = dict(pruned or {})


class BudgetSpent(MeshwrightError):
    """The time limit was reached before any feasible plan was found."""

    slug = "budget-spent"
    exit_code = 6
    http_status = 504


class BackEndRefused(MeshwrightError):
    """A back-end's rules refuse the plan, or it can run no plan of the problem."""

    slug = "backend-refused"
    exit_code = 8
    http_status = 422


class ValidatorUnavailable(MeshwrightError):
    """A back-end's own validator cannot be installed, or its process gives no verdict."""

    slug = "validator-unavailable"
    exit_code = 3
    http_status = 503
