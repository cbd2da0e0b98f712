"""The YAML text of a Kubernetes object, which people can edit and which every YAML reader reads alike.

kubectl reads YAML 1.1, where ``on``, ``no`` and ``1e3`` are not text, so all text that is not plainly a word is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

from planner.backends.launch.settings import IMAGE_PLACEHOLDER

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_IMAGE_KEY = "image"


def manifest_text(*objects: Mapping[str, Any], head: str = "") -> str:
    """YAML documents, with ``head`` as comment lines above them.

    Where the image is still to be set, it is written once and marked; other places refer to it by an alias.
    """
    from ruamel.yaml import YAML

    writer = YAML(typ="rt", pure=True)
    writer.default_flow_style = False
    writer.width = 10_000
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    writer.dump_all([_dressed(each) for each in objects], stream)
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return comment + _mark_image(stream.getvalue())


def _dressed(value: Any) -> Any:
    """The value with every text in the style that reads the same everywhere."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, Mapping):
        made = CommentedMap()
        for key, item in value.items():
            made[_dressed(key)] = _dressed(item)
        return made
    if isinstance(value, list | tuple):
        return CommentedSeq([_dressed(item) for item in value])
    if not isinstance(value, str):
        return value
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    if "\n" in value and _literal(value):
        return LiteralScalarString(value)
    return DoubleQuotedScalarString(value)


def _literal(text: str) -> bool:
    """Whether a block scalar keeps every byte: printable, no line that ends or begins the block in spaces."""
    lines = text.split("\n")
    first = next((line for line in lines if line), "")
    plain = all(letter.isprintable() or letter in "\n\t" for letter in text)
    return plain and not first.startswith((" ", "\t")) and not text.startswith("\n") and "\ufeff" not in text


def _mark_image(text: str) -> str:
    line = f"{_IMAGE_KEY}: {IMAGE_PLACEHOLDER}"
    count = text.count(line)
    if not count:
        return text
    anchor = "&image " if count > 1 else ""
    marked = f"{_IMAGE_KEY}: {anchor}{IMAGE_PLACEHOLDER}  # <- YOURS: the image that has the training software"
    return text.replace(line, marked, 1).replace(f"{line}\n", f"{_IMAGE_KEY}: *image\n")
