"""Tables that ship as TOML files beside the modules that read them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def shipped_table(package: str, name: str) -> dict[str, Any]:
    """The content of one file of a package; it is shared, so nobody may change it."""
    return tomllib.loads((files(package) / name).read_text(encoding="utf-8"))


def shipped_words(package: str, name: str) -> dict[str, tuple[str, ...]]:
    """The lists of words of one file, whose values are texts that blanks part."""
    return {key: tuple(text.split()) for key, text in shipped_table(package, name).items()}
