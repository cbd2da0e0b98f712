"""What can go wrong, in the user's words: the root of the error tree.

    MeshwrightError                     exit 1   our bug, unless a subclass says otherwise
    ├── DocumentInvalid                 exit 2   a file, value or flag that cannot be used
    ├── NotFound                        exit 3   a name or id that does not exist
    ├── Conflict                        exit 4   an immutable thing would change
    └── ProfileMissing                  exit 7   a number that only a measurement can give

``planner/errors.py`` hangs the planning errors on the same tree.
"""

from __future__ import annotations

from typing import ClassVar


class MeshwrightError(Exception):
    """One clear error: what is wrong, where, and how to repair it.

    ``where`` is a file with a JSON pointer (``cluster.yaml#/pools/0/num_nodes``) or a flag (``--devices``);
    ``hint`` says what would fix it.  Doors map ``exit_code`` and ``http_status`` and print nothing else.
    """

    slug: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  --> {self.where}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class DocumentInvalid(MeshwrightError):
    """An input document, value or flag is malformed or impossible."""

    slug = "document-invalid"
    exit_code = 2
    http_status = 422


class NotFound(MeshwrightError):
    """A named thing (model, cluster, device, plan, file) does not exist."""

    slug = "not-found"
    exit_code = 3
    http_status = 404


class Conflict(MeshwrightError):
    """The request would change something immutable, or two inputs contradict each other."""

    slug = "conflict"
    exit_code = 4
    http_status = 409


class ProfileMissing(MeshwrightError):
    """A required number is neither measured nor in the catalogue."""

    slug = "profile-missing"
    exit_code = 7
    http_status = 422
