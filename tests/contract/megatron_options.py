"""Prints every option of Megatron-LM's parser: ``python -m tests.contract.megatron_options FOLDER``.

``FOLDER``: the overlay of the ``megatron-core`` validator.  A process of its own: it patches torch and Megatron.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from planner.backends.megatron.validator_worker import feign_packages, feign_transformer_engine


def main(folder: Path) -> None:
    """Print the spellings of each argument, without dashes and with ``-`` for ``_``."""
    sys.path.insert(0, str(folder))
    feign_packages(folder)
    feign_transformer_engine()
    from megatron.training.arguments import add_megatron_arguments

    for action in add_megatron_arguments(argparse.ArgumentParser())._actions:
        spellings = [option[2:].replace("_", "-") for option in action.option_strings if option.startswith("--")]
        if spellings:
            sys.stdout.write(" ".join(spellings) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
