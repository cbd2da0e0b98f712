"""The training run that a script starts: its words, and everything that the text left open."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model.shell.interpreter import Interpreter, Opener, started
from planner.model.shell.outcome import Command, TooLongError
from planner.model.shell.scope import UNKNOWN, Undecided, Value, names_in
from planner.model.shell.slurm import slurm_variables
from planner.model.shell.tree import ShellSyntaxError

_SIGNS = frozenset({
    "--num-layers", "--hidden-size", "--tensor-model-parallel-size", "--micro-batch-size", "--num-attention-heads",
})  # fmt: skip
_PRINTS = frozenset({"echo", "printf", "cat", ":", "tee", "grep", "awk", "sed"})
_ASSIGNED = re.compile(r"^\s*(?:export\s+|local\s+)?([A-Za-z_]\w*)\+?=", re.MULTILINE)
_TRAINS = re.compile(r"(?:pretrain|train|finetune)\w*\.py\Z")
_RUNS_RECIPE = re.compile(
    r"(?:\A|/)(?:run_recipe|run_script|(?:\w+_)?setup_experiment|bootstrap)\.py\Z|\Atorchtitan\.train\Z|(?i:\Amax_?text\.[\w.]*train\Z)"
)
"""Megatron-Bridge's launchers; modules of torchtitan and MaxText."""
_LAUNCHER = re.compile(r"(?:.*/)?(?:deepspeed|accelerate)\Z")
_FACTORY = re.compile(r"(?:.*/)?(?:llamafactory-cli|lmf)\Z")
_PYTHON = re.compile(r"(?:.*/)?(?:torchrun|python[\d.]*|deepspeed|mpirun|srun|uv|accelerate)\Z")


@dataclass(frozen=True, slots=True)
class Launch:
    """What a script starts.

    ``words``: of the launch; of all commands, or of the arrays, where the text starts nothing.  ``skipped``: arguments
    that only a condition adds, which the text does not decide.  ``undecided``: those conditions and other open places
    that the words depend on.  ``taken_as_unset``: environment variables that the script tests or gives a default.
    ``count``: launches in the script; this is the first.  ``stopped_at``: line of an ``exit`` before any launch.
    """

    words: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    taken_as_unset: tuple[tuple[str, int], ...] = ()
    line: int = 0
    count: int = 0
    stopped_at: int | None = None
    others: tuple[tuple[str, int], ...] = ()
    """Commands with arguments, and their lines, of a script that starts no training program."""
    set_by_script: tuple[str, ...] = ()
    """Variables of ``given`` that the script sets itself, whatever was said."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is said beside the script: its environment, its arguments, its name, the files beside it."""

    variables: Mapping[str, str]
    arguments: tuple[str, ...] | None = None
    script: str = "script.sh"
    opener: Opener = lambda _: None


NOTHING = Given({})


def launch_of(text: str, given: Given = NOTHING) -> Launch:
    """The first training run of a script.  Raises ShellSyntaxError for what is no script."""
    text = text.replace("\r\n", "\n")
    start: dict[str, Value] = {**slurm_variables(text, given.variables), **given.variables}
    scope = started(start, given.arguments, given.script)
    scope.record.assigned = frozenset(_ASSIGNED.findall(text))
    run = Interpreter(given.opener)
    try:
        run.run(text, scope)
    except TooLongError:
        raise ShellSyntaxError("the script takes too many steps to follow", scope.record.line) from None
    except RecursionError:
        raise ShellSyntaxError("too many commands inside each other", scope.record.line) from None
    found = sorted(filter(is_launch, run.commands), key=lambda command: command.conditional)
    words = found[0].words if found else run.all_words(scope)
    marks = {name for word in words for name in names_in(word)}
    skipped, undecided = list[str](), list[Undecided]()
    for what, names, left_out in scope.record.undecided:
        flags = [word for word in left_out if word not in skipped]
        skipped += flags
        depends = any(f"${name}" in marks for name in names) or "source" in names
        if depends or any(flag.startswith("--") for flag in flags) or (found and found[0].conditional and not names):
            undecided.append(what)
    return Launch(
        separated(words),
        tuple(skipped),
        tuple(dict.fromkeys(undecided)),
        tuple(scope.record.taken_as_unset.items()),
        found[0].line if found else 0,
        len(found),
        None if found else run.stopped_at,
        others=() if found else tuple((_shown(each.words), each.line) for each in run.commands if _passes_on(each)),
        set_by_script=tuple(name for name, value in given.variables.items() if scope.values.get(name) != value),
    )


def _passes_on(command: Command) -> bool:
    """Whether a command of another program takes arguments such as a training program has."""
    words = command.words
    return bool(words) and words[0][:1] != "-" and words[0] not in _PRINTS and any(w.startswith("--") for w in words)


def _shown(words: Sequence[str]) -> str:
    return " ".join(words[:3]).replace(UNKNOWN, "")[:60]


def is_launch(command: Command) -> bool:
    """Whether a command starts a training run: it passes a model's arguments on, or a Python script with arguments."""
    words = command.words
    if not words or words[0] in _PRINTS:
        return False
    if words[:2] == ("nemo", "llm"):
        return True
    if any(word.split("=", 1)[0].split(" ", 1)[0].replace("_", "-") in _SIGNS for word in words):
        return not words[0].startswith("--")
    program = next((place for place, word in enumerate(words) if word.endswith(".py")), 0)
    before = words[: max(4, program)]
    starts = any(_PYTHON.match(word) for word in before)
    trains = any(_TRAINS.search(word) for word in words)
    if starts and (trains or any(_RUNS_RECIPE.search(word) for word in words)):
        return True
    if any(_FACTORY.match(word) for word in words[:4]) and "train" in words:
        return True
    return any(_LAUNCHER.match(word) for word in before) and any(word.endswith(".py") for word in words)


def separated(words: Sequence[str]) -> tuple[str, ...]:
    """Words with an element ``"--flag value"`` as its two words; a lone space is none."""
    apart = list[str]()
    for word in words:
        if word.startswith("--") and " " in word and not {"=", UNKNOWN} & set(word.split(" ", 1)[0]):
            apart += word.split()
        elif word.strip():
            apart.append(word)
    return tuple(apart)
