"""``overrides.txt``, written and read: Hydra's syntax, one ``path=value`` a line.

The lines can be given to any Bridge recipe of the same model, after its name.  ``env_vars`` is part of Bridge's config.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import groupby

from planner.backends.megatron.arguments import Section, Words
from planner.backends.megatron_bridge.fields import ALWAYS_SAID, CPU_OFFLOADING, FIELDS, SPOKEN_OTHERWISE, Field
from planner.backends.megatron_bridge.version import BRIDGE_VERSION
from planner.errors import DocumentInvalid

OVERRIDES_FILE = "overrides.txt"
ENVIRONMENT = "++env_vars."

_BY_FLAG = {field.flag: field for field in FIELDS}
_BY_PATH = {path: field for field in FIELDS for path in field.paths}


def overrides_of(arguments: Mapping[str, Words]) -> dict[str, str]:
    """Paths and values of Megatron's flags.  Raises ValueError for a flag that Bridge has no name for."""
    said: dict[str, str] = {}
    for flag, words in arguments.items():
        if flag in SPOKEN_OTHERWISE:
            continue
        field = _BY_FLAG.get(flag)
        if field is None:
            raise ValueError(f"no field of Bridge is known for {flag}")
        value = _value(field, words)
        said |= dict.fromkeys(field.paths, value)
        if flag == "--cpu-offloading-num-layers":
            said[CPU_OFFLOADING] = "true"
    for flag in ALWAYS_SAID:
        if flag not in arguments:
            said |= dict.fromkeys(_BY_FLAG[flag].paths, "false")
    return said


def _value(field: Field, words: Words) -> str:
    if field.kind in ("true", "false"):
        return field.kind
    if field.flag == "--window-size":
        return f"[{words[0]}]"
    if field.flag == "--linear-attention-freq":
        return words[0]
    if field.flag in ("--moe-layer-freq", "--window-attn-skip-freq"):
        return "[" + ",".join(str(number) for number in _pattern(words[0])) + "]"
    if field.kind == "list":
        return "[" + ",".join(words) + "]"
    # Hydra would read the signs of a layout, or of a pattern, as its own.
    return f"'{words[0]}'" if field.flag in ("--pipeline-model-parallel-layout", "--hybrid-layer-pattern") else words[0]


def _pattern(text: str) -> list[int]:
    """``([0]*3+[1]*58)`` -> numbers; the inverse of ``list_pattern`` and of nothing else."""
    numbers: list[int] = []
    for run in text.strip("()").split("+"):
        value, _, count = run.partition("*")
        numbers += ast.literal_eval(value) * int(count)
    return numbers


def overrides_text(sections: tuple[Section, ...], environment: Mapping[str, str], version: str = BRIDGE_VERSION) -> str:
    """The file: the plan's lines under their headings, environment last."""
    everything = {flag: words for section in sections for flag, words in section.arguments.items()}
    left = overrides_of(everything)
    blocks = [
        f"# Overrides of a Megatron-Bridge {version} recipe: hand them over as command line words, or use plan()."
    ]
    for section in sections:
        lines: list[str] = []
        for flag in section.arguments:
            said = [path for path in (_BY_FLAG[flag].paths if flag in _BY_FLAG else ()) if path in left]
            lines += section.comments(flag) if said else ()
            lines += [f"{path}={left.pop(path)}" for path in said]
        if lines:
            blocks.append("\n".join((f"# {section.title}", *lines)))
    blocks.append("\n".join(("# Also said", *(f"{path}={value}" for path, value in left.items()))))
    lines = [f"{ENVIRONMENT}{name}='{value}'" for name, value in sorted(environment.items())]
    blocks.append("\n".join(("# Environment; a launcher's own values win", *lines)))
    return "\n\n".join(blocks) + "\n"


def parse_overrides(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Paths and environment of a file.  Raises DocumentInvalid for a line that is not an override of plans."""
    said: dict[str, str] = {}
    environment: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith("#"):
            continue
        path, separator, value = line.partition("=")
        where = f"{OVERRIDES_FILE}:{number}"
        if not separator or not path:
            raise DocumentInvalid(f"{line!r} is not path=value", where=where, hint="emit the plan again")
        if path in said or path.removeprefix(ENVIRONMENT) in environment:
            raise DocumentInvalid(f"{path} is given twice", where=where, hint="remove one of them")
        if path.startswith(ENVIRONMENT):
            environment[path.removeprefix(ENVIRONMENT)] = value.strip("'\"")
        elif path in _BY_PATH or path == CPU_OFFLOADING:
            said[path] = value.strip("'\"")
        else:
            raise DocumentInvalid(f"{path} is not a field that plans use", where=where, hint="delete the line")
    return said, environment


def arguments_of(said: Mapping[str, str]) -> dict[str, Words]:
    """Megatron's flags, from paths.  Raises DocumentInvalid when two paths of one flag differ."""
    arguments: dict[str, Words] = {}
    for field in FIELDS:
        values = {said.get(path) for path in field.paths}
        if values == {None}:
            continue
        if len(values) > 1:
            told = ", ".join(f"{path}={said.get(path)}" for path in field.paths)
            raise DocumentInvalid(f"these must agree: {told}", where=OVERRIDES_FILE, hint="emit the plan again")
        value = said[field.paths[0]]
        if field.kind in ("true", "false"):
            if value not in ("true", "false"):
                what = f"{field.paths[0]} is true or false, not {value!r}"
                raise DocumentInvalid(what, where=OVERRIDES_FILE)
            if value == field.kind:
                arguments[field.flag] = ()
        elif field.flag == "--linear-attention-freq":
            arguments[field.flag] = (value,)
        elif field.flag == "--window-size":
            arguments[field.flag] = (value.strip("[]"),)
        elif field.flag in ("--moe-layer-freq", "--window-attn-skip-freq"):
            runs = [(each, len(list(run))) for each, run in groupby(value.strip("[]").split(","))]
            arguments[field.flag] = ("(" + "+".join(f"[{each}]*{count}" for each, count in runs) + ")",)
        elif field.kind == "list":
            arguments[field.flag] = tuple(value.strip("[]").split(","))
        else:
            arguments[field.flag] = (value,)
    if (said.get(CPU_OFFLOADING) == "true") != ("--cpu-offloading-num-layers" in arguments):
        what = f"{CPU_OFFLOADING}=true and model.cpu_offloading_num_layers go together"
        raise DocumentInvalid(what, where=OVERRIDES_FILE, hint="emit the plan again")
    return arguments
