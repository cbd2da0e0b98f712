"""Prints every argument of Megatron-DeepSpeed: ``python -m tests.contract.megatron_deepspeed_options MIRRORS``.

``MIRRORS``: a folder of bare repositories, each as ``owner+name/repo``.  ``megatron_deepspeed_options.txt`` keeps what
it prints, and what DeepSpeed's own ``add_config_arguments`` adds to a program's parser.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.contract.mindspeed_options import added

SOURCES = (("microsoft+Megatron-DeepSpeed", "f4157bea"), ("bigscience-workshop+Megatron-DeepSpeed", "8387ae17"))
ENGINE = ("deepspeed", "deepspeed-config", "deepscale", "deepscale-config", "deepspeed-mpi")


def main(mirrors: Path) -> None:
    """Print the names in order, without dashes and with ``-`` for ``_``."""
    files = ("megatron/arguments.py",)
    names = {name for repository, commit in SOURCES for name in added(mirrors / repository, commit, files)}
    sys.stdout.write("".join(f"{name}\n" for name in sorted({*names, *ENGINE})))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
