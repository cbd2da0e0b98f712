"""How does the first plan start at once?  ``python -m planner.schedule.compile_kernels`` fills the kernel cache."""

from __future__ import annotations

import planner.schedule.run  # noqa: F401  # the kernels that are loaded
from solver.selection.kernel import load_kernels


def main() -> None:
    """Compile what is not kept yet."""
    load_kernels("planner")
    print("planner: kernels compiled")


if __name__ == "__main__":
    main()
