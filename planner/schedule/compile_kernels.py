"""How does the first plan start at once?  ``python -m planner.schedule.compile_kernels`` fills the kernel cache."""

from __future__ import annotations

import planner.schedule.run  # noqa: F401  # importing compiles


def main() -> None:
    """Importing was the work."""
    print("planner: kernels compiled")


if __name__ == "__main__":
    main()
