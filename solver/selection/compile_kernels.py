"""Compiles every kernel into the cache, so that the first solve need not: ``python -m solver.selection.compile_kernels``."""

from __future__ import annotations

import solver.selection.solve  # noqa: F401  # importing compiles


def main() -> None:
    """Importing was the work."""
    print("solver: kernels compiled")


if __name__ == "__main__":
    main()
