"""``python -m solver.selection.compile_kernels`` fills the kernel cache: the first solve then starts at once."""

from __future__ import annotations

import solver.partition_kernels
import solver.selection.solve  # noqa: F401  # the kernels that are loaded
from solver.selection.kernel import load_kernels


def main() -> None:
    """Compile what is not kept yet."""
    load_kernels("solver")
    print("solver: kernels compiled")


if __name__ == "__main__":
    main()
