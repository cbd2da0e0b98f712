"""The measured runs that helped to choose a constant of the cost model: row ids, so that others can judge.

Lines ``id<TAB>digest``; ``#`` starts a comment.  The digest (``row_digest``) ties an id to what the row says: a row of
another file that happens to bear the same id is no fitted row.  A line without a digest means every row of that id.
The list that comes with the planner is written by ``python -m benchmarks.fitting_rows``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from planner.errors import DocumentInvalid
from planner.evidence.runs.truth import COLUMNS, TruthRow

COMMITTED = Path(__file__).parent / "rows_used_for_fitting.txt"
DIGEST_LETTERS = 8
HEXADECIMAL = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class FittedRows:
    """Ids with their digests ("" = any)."""

    digests: dict[str, str]

    def holds(self, row: TruthRow) -> bool:
        """Whether a constant was chosen with this row."""
        digest = self.digests.get(row.id)
        return digest is not None and digest in ("", row_digest(row))


def committed_fitted_rows() -> FittedRows:
    """The list that comes with this planner."""
    return read_fitted_rows(COMMITTED.read_text(encoding="utf-8"), str(COMMITTED))


def read_fitted_rows(text: str, where: str) -> FittedRows:
    """Parse a list.  Raises DocumentInvalid for a line that is no id with or without a digest."""
    digests: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if line.startswith("#") or not line.strip():
            continue
        identity, _, digest = (part.strip() for part in line.partition("\t"))
        if not identity or (digest and (len(digest) != DIGEST_LETTERS or not set(digest) <= HEXADECIMAL)):
            raise DocumentInvalid(
                f"{line[:60]!r} is no row id (or row id, tab, {DIGEST_LETTERS} hexadecimal digits)",
                where=f"{where}:{number}",
                hint="give one row id a line",
            )
        digests[identity] = digest
    return FittedRows(digests)


def fitted_rows_text(rows: Iterable[TruthRow], said: str) -> str:
    """A list of these rows; ``said`` becomes its first comment."""
    lines = sorted(f"{row.id}\t{row_digest(row)}" for row in rows)
    return "\n".join([f"# {said}", *lines]) + "\n"


def row_digest(row: TruthRow) -> str:
    """First hexadecimal digits of the SHA-256 of the row's cells as they were read."""
    said = "\x1f".join(str(getattr(row, name)) for name in COLUMNS)
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:DIGEST_LETTERS]
