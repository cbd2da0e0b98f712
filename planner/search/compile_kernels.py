"""``python -m planner.search.compile_kernels`` fills the cache of compiled kernels."""

from __future__ import annotations

import planner.predict.schedule.run
import planner.search.family_pairs
import planner.search.line_dealings  # noqa: F401  # the kernels that are loaded
from solver.selection.kernel import load_kernels


def main() -> None:
    """Compile what is not kept yet."""
    load_kernels("planner")
    print("planner: kernels compiled")


if __name__ == "__main__":
    main()
