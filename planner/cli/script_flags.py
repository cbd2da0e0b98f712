"""The flags about a launch script, one definition each, and what they say together."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.backend_names import ANY
from planner.cli.key_values import key_values
from planner.cli.output import talk
from planner.errors import DocumentInvalid
from planner.operations.launch_files import is_script, read_script, script_backend
from planner.operations.said_script import SaidScript

if TYPE_CHECKING:
    from planner.cli.planning import ReadScript
    from planner.model.megatron_args import LaunchJob

From = Annotated[
    str | None,
    typer.Option("--from", metavar="SCRIPT", help="Your launch script or job file: model, batch, devices, strategy."),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="VAR=VALUE", help="A variable of the script's environment. Repeatable."),
]
ScriptArguments = Annotated[
    str | None, typer.Option("--script-args", metavar="TEXT", help="Arguments of the script, as one text (or -- ARGS).")
]
VocabularySize = Annotated[
    int | None, typer.Option("--vocab-size", metavar="N", help="Tokens of the script's tokenizer; padded as it says.")
]
PassedOn = Annotated[list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments of the script.")]
MaybeModel = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="M", help="HF config.json, Megatron args, model YAML, or a built-in name."),
]
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
MOST_TOKENS = 10**8


@dataclass(frozen=True, slots=True)
class ScriptFlags:
    """What the command line says about a launch script; None = not said."""

    path: str | None = None
    variables: list[str] | None = None
    arguments: str | None = None
    passed_on: list[str] | None = None
    vocab_size: int | None = None


def said_job(
    flags: ScriptFlags, model: str | None, devices: int | None, command: str, quiet: bool
) -> tuple[str, LaunchJob | None]:
    """The model's reference, and the job of the launch script where one is meant.

    Variables that had no effect are told at once: the answer that lists them too may never come.  Raises
    DocumentInvalid for flags that do not go together, NotFound, FindingsInvalid.
    """
    if flags.path is None:
        if flags.passed_on:
            raise DocumentInvalid(
                f"unexpected extra arguments ({' '.join(flags.passed_on)})",
                where=f"meshwright {command}",
                hint="leave them out; arguments of a launch script need --from SCRIPT",
            )
        refuse_without(flags, "--from SCRIPT")
        if model is None:
            raise DocumentInvalid(
                "Missing option '--model': which model?", where="--model", hint="give --model M, or --from SCRIPT"
            )
        return model, read_script(SaidScript(model, devices=devices)) if is_script(model) else None
    job = read_script(replace(said_script(flags, devices), model=model))
    tell_without_effect(job, quiet)
    return flags.path, job


def tell_without_effect(job: LaunchJob, quiet: bool) -> None:
    """One line for each variable that was given and that the script sets itself."""
    for name in job.set_by_script:
        talk(f"--set {name} has no effect: the script sets {name} itself", quiet=quiet)


def refuse_without(flags: ScriptFlags, named_by: str) -> None:
    """Refuse what is said about a script where none is named.  Raises DocumentInvalid."""
    beside = {"--set": flags.variables, "--script-args": flags.arguments, "--vocab-size": flags.vocab_size}
    for name, value in beside.items():
        if value is not None:
            raise DocumentInvalid("that is about a launch script", where=name, hint=f"name it: {named_by}")


def refuse_beside(flags: ScriptFlags, others: dict[str, bool]) -> None:
    """Refuse flags of answers that no run is compared with.  Raises DocumentInvalid."""
    for name, given in others.items():
        if given and flags.path is not None:
            raise DocumentInvalid(
                "a script's run is compared with one plan on one cluster", where=name, hint=f"drop {name} or --from"
            )


def said_script(flags: ScriptFlags, devices: int | None = None) -> SaidScript:
    """The script with what is said beside it.  Raises DocumentInvalid."""
    if flags.vocab_size is not None and not 0 < flags.vocab_size <= MOST_TOKENS:
        raise DocumentInvalid(
            f"{flags.vocab_size} is out of range", where="--vocab-size", hint=f"give 1 to {MOST_TOKENS:,} tokens"
        )
    arguments = None if flags.passed_on is None or not flags.passed_on else tuple(flags.passed_on)
    if flags.arguments is not None:
        if arguments is not None:
            raise DocumentInvalid("arguments are given twice", where="--script-args", hint="keep one of the two ways")
        try:
            arguments = tuple(shlex.split(flags.arguments))
        except ValueError:
            raise DocumentInvalid(
                "a quote is not closed", where="--script-args", hint="write them as in a shell"
            ) from None
    return SaidScript(flags.path or "", _variables(flags.variables or []), arguments, flags.vocab_size, devices)


def _variables(texts: list[str]) -> dict[str, str]:
    found = key_values(texts, "--set", "for example --set NNODES=4")
    if strange := next((name for name in found if not _NAME.match(name)), None):
        raise DocumentInvalid(f"{strange!r} is no variable", where="--set", hint="for example --set NNODES=4")
    return found


def software_of(backend: str | None, flags: ScriptFlags, job: LaunchJob | None) -> str:
    """``--backend``, or the software that runs the script that ``--from`` names."""
    if backend is None and flags.path is not None and job is not None:
        return script_backend(job)
    return ANY if backend is None else backend


def shown_beside(flags: ScriptFlags, job: LaunchJob | None, quiet: bool) -> ReadScript | None:
    """The script that ``--from`` names; of one that ``--model`` names the open places are told at once."""
    from planner.cli.planning import ReadScript

    if job is None or flags.path is not None:
        return None if job is None or flags.path is None else ReadScript(flags.path, job)
    tell_open_places(job, quiet)
    return None


def tell_open_places(job: LaunchJob, quiet: bool) -> None:
    """One line each for what of a script, named as the model, does not reach the answer."""
    unset = (f"{name} (line {line})" for name, line in job.taken_as_unset)
    places = (f"line {place.line}: {place.what}" for place in job.undecided)
    for title, lines in (
        ("not modelled", job.arguments.not_modelled),
        ("not known", job.arguments.unknown),
        ("taken as not set", unset),
        ("undecided", places),
        ("left out", job.skipped),
    ):
        if words := ", ".join(lines):
            talk(f"{title}: {words}", quiet=quiet)
