"""How much a search handles at a time: rows cost memory, calls cost time."""

from __future__ import annotations

FIRST_BATCH = 200_000
NEXT_BATCH = 16_000_000
"""Declared leaves under the cores written out at a time: the first batch finds an incumbent."""
FIRST_LAYOUTS, MANY_LAYOUTS, MOST_LAYOUTS = 48, 500, 8_000
"""Rows handled at a time; they bound the memory that a search needs.  A few layouts give the first incumbent; where one
is known already, a search begins with many."""
MANY_CORES = 2_000
"""From so many cores on a search looks ahead before it looks at anything else."""
