"""Scripts of NeMo 2: Python files that make or change a recipe, command lines of ``nemo llm``.  Nothing is executed.

A recipe is a function of ``nemo.collections.llm`` (``llm.llama3_70b.pretrain_recipe(...)``), or is made of
``run.Partial(llm.pretrain, ...)`` or of a call of ``llm.pretrain`` itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.backends.megatron_bridge.job import Beside
from planner.backends.nemo import perf_configs
from planner.backends.nemo.job import job_of_recipe
from planner.backends.nemo.recipe_table import FUNCTIONS, put, recipe
from planner.backends.rules.settings import literal
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.python_script import follow
from planner.model.python_values import Ref, Thing, plain_thing

_SIGNS = re.compile(r"^\s*(?:from|import)\s+nemo(?:\.collections|_run|\.lightning)?\b", re.MULTILINE)
_OVERRIDE = re.compile(r"[a-z_]+(?:\.\w+)+=")
_STARTS = {"pretrain": "pretrain_recipe", "finetune": "finetune_recipe", "train": "pretrain_recipe"}
_ORDER = ("model", "data", "trainer", "log", "resume", "optim", "tokenizer")
"""Parameters of ``llm.pretrain`` (collections/llm/api.py:143)."""
_FACTORY = re.compile(r"(?P<name>\w+)(?:\((?P<arguments>.*)\))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a script is, its words and its environment."""

    where: str
    words: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def is_nemo(text: str) -> bool:
    """Whether a Python file imports NeMo."""
    return _SIGNS.search(text) is not None


def is_command(words: Sequence[str]) -> bool:
    """Whether words start ``nemo llm pretrain`` or ``finetune``."""
    return _place(words) is not None


def _place(words: Sequence[str]) -> int | None:
    for place in range(len(words) - 2):
        head, group, task = words[place : place + 3]
        if head.rpartition("/")[2] in ("nemo", "nemorun") and group == "llm" and task in ("pretrain", "finetune"):
            return place + 2
    return None


def job_of_words(words: Sequence[str], sources: Sources, beside: Beside) -> LaunchJob:
    """The run of ``nemo llm pretrain --factory NAME path=value ...``.  Raises DocumentInvalid, FindingsInvalid."""
    place = _place(words) or 0
    task, own = words[place], list(words[place + 1 :])
    factory, harmless, overrides = "", list[str](), list[str]()
    while own:
        word = own.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--factory", "-f"):
            factory = value if equals else (own.pop(0) if own else "")
        elif word.startswith("-"):
            harmless.append(word)
        else:
            overrides.append(word)
    config = _factory(factory, task, sources.where)
    _lay_over(config, overrides, sources.where)
    return job_of_recipe(config, sources.where, replace(beside, no_influence=tuple(harmless)))


def job_of_python(text: str, sources: Sources, beside: Beside) -> LaunchJob:
    """The run that a Python file configures.  Raises DocumentInvalid, FindingsInvalid."""
    overrides = [word for word in sources.words if _OVERRIDE.match(word)]
    words = [word for word in sources.words if not _OVERRIDE.match(word)]

    def made(name: str, arguments: list[Any], settings: dict[str, Any], line: int) -> Any:
        return _made(name, arguments, settings, line, sources.where)

    found = follow(text, sources.where, made, words, sources.variables)
    if not found.trained and (factory := _said_factory(words)) is not None:
        found.trained.append(_factory(factory, "pretrain", sources.where))
    configs = [each for each in (*found.trained, *reversed(found.made)) if each.name.startswith("recipe ")]
    if not configs:
        raise DocumentInvalid(
            "it makes no recipe of NeMo 2 that can be followed",
            where=sources.where,
            hint="call llm.llama3_8b.pretrain_recipe(...), or llm.pretrain(model=..., data=..., trainer=...)",
        )
    _lay_over(configs[0], overrides, sources.where)
    return job_of_recipe(configs[0], sources.where, replace(beside, undecided=tuple(found.undecided)))


def _factory(text: str, task: str, where: str) -> Thing:
    """The recipe of ``name`` or ``name(argument=value, ...)``."""
    match = _FACTORY.match(text)
    if match is None:
        raise DocumentInvalid(f"nemo llm {task} names no recipe", where=where, hint="add --factory, such as llama3_8b")
    return recipe(match["name"], _STARTS[task], _arguments(match["arguments"], where), where)


def _said_factory(words: Sequence[str]) -> str | None:
    """The recipe that the words of a script name."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in ("--factory", "-f"):
            return value if equals else next(iter(words[place + 1 : place + 2]), None)
    return None


def _arguments(text: str | None, where: str) -> dict[str, Any]:
    """Keyword arguments of a factory on a command line."""
    if not text:
        return {}
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        words = call.keywords if isinstance(call, ast.Call) else []
        return {str(word.arg): ast.literal_eval(word.value) for word in words}
    except (SyntaxError, ValueError) as error:
        raise DocumentInvalid(f"arguments of the factory: {error}", where=where, hint="write name=VALUE") from error


def _lay_over(config: Thing, overrides: Sequence[str], where: str) -> None:
    for word in overrides:
        path, equals, value = word.partition("=")
        if not equals or "[" in path or ("." not in path and "(" in value):
            raise DocumentInvalid(
                f"{word!r} is not followed", where=where, hint="write path=VALUE with the path of a plain field"
            )
        held = literal(value.strip("'\""))
        put(config, path, None if held in ("null", "None") else held, 0, said=True)


def _made(name: str, arguments: list[Any], settings: dict[str, Any], line: int, where: str) -> Any:
    """Recipes and configurations; None for any other call."""
    *before, last = name.split(".")
    module = before[-1] if before else ""
    first = arguments[0] if arguments else None
    if name in ("fiddle.build", "fiddle.cast") and arguments:
        return arguments[-1] if isinstance(arguments[-1], Thing) else None
    if last in perf_configs.FUNCTIONS:
        return perf_configs.called(last, arguments, settings, line)
    if last in FUNCTIONS and module not in ("", "?"):
        return recipe(module, last, settings, where, line)
    if last == "model" and ".llm." in name and module not in ("", "?"):
        return recipe(module, FUNCTIONS[0], {}, where, line).fields["model"]
    if name.startswith("nemo_run.") and last in ("Config", "Partial") and isinstance(first, Ref):
        target = first.name.rpartition(".")[2]
        kind = f"recipe {target}" if target in _STARTS else first.name
        return plain_thing(kind, arguments[1:], settings, line)
    if last in _STARTS and (module == "llm" or name.startswith("nemo.collections.llm")):
        return plain_thing(f"recipe {last}", [], {**dict(zip(_ORDER, arguments, strict=False)), **settings}, line)
    if name.startswith("nemo") and last[:1].isupper() and last not in ("SlurmExecutor", "LocalExecutor"):
        return plain_thing(name, arguments, settings, line)
    return None
