"""Prints every argument that MindSpeed and MindSpeed-LLM add: ``python -m tests.contract.mindspeed_options MIRRORS``.

``MIRRORS``: a folder of bare repositories, each as ``owner+name/repo``.  Nothing is run: calls of ``add_argument`` and
its relatives are read in the sources at the commits below.  ``mindspeed_options.txt`` keeps what it prints.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = (
    ("Ascend+MindSpeed", "028de58c", ("mindspeed/features_manager", "mindspeed/arguments.py")),
    ("Ascend+MindSpeed-LLM", "c77308a1", ("mindspeed_llm/features_manager", "mindspeed_llm/training")),
    ("NVIDIA+Megatron-LM", "core_v0.12.1", ("megatron/training/arguments.py",)),
)
"""Repository, commit and folders; the arguments of Megatron-LM are those of the tag that MindSpeed patches."""
ADDERS = frozenset({"add_argument", "add_parser_argument"})


def main(mirrors: Path) -> None:
    """Print the names in order, without dashes and with ``-`` for ``_``."""
    names = {name for repository, commit, places in SOURCES for name in added(mirrors / repository, commit, places)}
    sys.stdout.write("".join(f"{name}\n" for name in sorted(names)))


def added(repository: Path, commit: str, places: tuple[str, ...]) -> Iterator[str]:
    """Names that the sources below some places add."""
    folder = str(repository / "repo")
    listed = _git(folder, "ls-tree", "-r", "--name-only", commit, *places).split("\n")
    for file in (name for name in listed if name.endswith(".py")):
        for node in ast.walk(ast.parse(_git(folder, "show", f"{commit}:{file}"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ADDERS:
                words = [word.value for word in node.args if isinstance(word, ast.Constant)]
                yield from (str(word)[2:].replace("_", "-") for word in words if str(word).startswith("--"))


def _git(folder: str, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
