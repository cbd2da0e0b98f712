"""How does the first solve start at once?  ``python -m solver.selection.compile_kernels`` fills the kernel cache."""

from __future__ import annotations

import solver.selection.solve  # noqa: F401  # importing compiles


def main() -> None:
    """Importing was the work."""
    print("solver: kernels compiled")


if __name__ == "__main__":
    main()
