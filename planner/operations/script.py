"""A launch script that is sent as text: what it says, the prediction of its run, and why a plan is not that run.

Nothing of the script is executed.  The command line reads scripts where they lie, with the files beside them
(``planner.operations.launch_files``); those who have no file here send the text and get the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from planner.answers.explain.why_not import WhyNot
from planner.errors import DocumentInvalid, MeshwrightError
from planner.model.spec import ModelSpec
from planner.operations.launch_files import plain_strategy, read_script, script_backend, script_strategy
from planner.operations.operation import Operation, Session
from planner.operations.question import Devices
from planner.operations.said_script import SaidScript
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.strategy.fields import PINNABLE
from profiles.document import Document
from profiles.validation import FindingsInvalid

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob
    from profiles.cluster import Cluster
    from profiles.prediction.reference import ProfileReference

LONGEST_SCRIPT = 100_000
MOST_WORDS = 1_000
Text = Annotated[str, Field(max_length=LONGEST_SCRIPT)]
Word = Annotated[str, Field(max_length=10_000)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
FileName = Annotated[str, Field(max_length=300)]
_FIELDS = {
    "--from SCRIPT with ": "",
    "--set NAME=VALUE": "variables",
    "--set VAR=VALUE": "variables",
    "--set": "variables",
    "--script-args TEXT": "arguments",
    "--script-args": "arguments",
    "-- ARGS": "arguments",
    "-- --": "arguments: --",
    "-- ": "arguments: ",
    "--model config.json, or a built-in name": "model: a built-in name, or the document itself",
    "--model config.json": "model: a built-in name, or the document itself",
    "--devices": "devices",
    "--vocab-size N": "vocab_size",
    "--global-batch-size, --sequence-length": "workload",
    "--model and --from": "model and text",
}
"""What the command line calls a part of this request -> the part."""


_PLACES = {
    "--set": "/variables",
    "--model": "/model",
    "--vocab-size": "/vocab_size",
    "--devices": "/devices",
    "--script-args": "/arguments",
    "--why-not": "/text",
}
"""Where the command line is wrong -> the part of this request."""


class ScriptRequest(Document):
    """A launch script, what is said beside it, and what is asked about its run."""

    text: str = Field(min_length=1, max_length=LONGEST_SCRIPT, description="the launch script, or its arguments")
    name: str = Field(default="script.sh", pattern=r"^[^/\x00]{1,200}$", description="what the file is called")
    variables: dict[VariableName, Word] = Field(
        default_factory=dict, max_length=MOST_WORDS, description="of the script's environment"
    )
    arguments: tuple[Word, ...] | None = Field(
        default=None, max_length=MOST_WORDS, description="of the script itself; null = nothing is said of them"
    )
    files: dict[FileName, Text] = Field(
        default_factory=dict, max_length=20, description="texts of the files that the script reads, by name"
    )
    vocab_size: int | None = Field(default=None, ge=1, le=10**8, description="tokens of the script's tokenizer")
    devices: Devices | None = Field(default=None, description="instead of the script's own number")
    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | dict[str, Any] | None = Field(
        default=None, description="of a file that says none: a built-in name, or a configuration"
    )
    cluster: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | dict[str, Any] | None = Field(
        default=None, description="a name or a document: the script's run is estimated on it"
    )
    workload: dict[str, Any] = Field(
        default_factory=dict, description="workload fields for the estimate, instead of what the script says"
    )
    profile: str = Field(
        default="none", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="measurements: none, auto, or a name"
    )
    plan: str | None = Field(
        default=None, max_length=128, description="why not the script's run: id, unique prefix or label of a plan"
    )


class ScriptArguments(Document):
    """Arguments of the training program as the script writes them, each in one list."""

    used: tuple[str, ...]
    no_influence: tuple[str, ...] = Field(description="they change nothing that a plan decides or predicts")
    not_modelled: tuple[str, ...] = Field(description="they may change the run; the prediction does not know them")
    unknown: tuple[str, ...] = Field(description="Megatron-LM 0.19.2 has no such argument")


class UnsetVariable(Document):
    """A variable or argument that the script asks for and nobody gave."""

    name: str
    line: int


class UndecidedPlace(Document):
    """A place that the text of the script does not decide."""

    line: int
    what: str
    say: str = Field(description="what would decide it")


class ScriptAnswer(Document):
    """What a launch script says, and what was asked about its run."""

    name: str
    model: ModelSpec
    vocabulary_from: str
    workload: dict[str, Any] = Field(description="workload fields that the script gives")
    strategy: dict[str, int | str | bool] = Field(description="with what Megatron-LM has off by default as off")
    pins: str = Field(description="the strategy as `why_not` of an explanation takes it")
    chunk_layers: tuple[int, ...] | None = Field(default=None, description="layers of every chunk; null = not said")
    backend: str
    devices: int | None = Field(default=None, description="nodes times processes a node; null = not said")
    derived: tuple[str, ...] = Field(default=(), description="what Megatron-LM derives, as sentences")
    arguments: ScriptArguments
    taken_as_unset: tuple[UnsetVariable, ...] = ()
    undecided: tuple[UndecidedPlace, ...] = ()
    left_out: tuple[str, ...] = Field(default=(), description="added only on an undecided condition: not used")
    set_by_script: tuple[str, ...] = Field(default=(), description="given variables that had no effect")
    launches: int = Field(default=0, description="runs that the script starts; the first is read")
    estimate: Plan | None = Field(default=None, description="the run on `cluster`, nothing of it chosen")
    filled_in: tuple[str, ...] = Field(default=(), description="strategy fields that the estimate filled in")
    why_not: WhyNot | None = Field(default=None, description="the run beside `plan`; `other` is the run")
    held_to: tuple[str, ...] = Field(default=(), description="where `plan`'s question has other work than the script")


def read_sent(asked: ScriptRequest) -> LaunchJob:
    """The job of a script that was sent.  Raises FindingsInvalid, DocumentInvalid, in the words of the request."""
    try:
        return read_script(_said(asked))
    except FindingsInvalid:
        raise
    except MeshwrightError as error:
        error.hint = _in_fields(error.hint)
        error.where = _PLACES.get(error.where or "", error.where)
        raise


def pins_text(strategy: Mapping[str, int | str | bool]) -> str:
    """Fields as ``why_not`` of an explanation takes them: ``tp=8,sp=true``."""
    words = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in strategy.items()}
    return ",".join(f"{name}={word}" for name, word in words.items() if name in PINNABLE)


def run_problem(asked: ScriptRequest, job: LaunchJob, cluster: Cluster, profile: ProfileReference | None) -> Problem:
    """The question of the estimate.  Raises FindingsInvalid, DocumentInvalid."""
    from planner.operations.question import asked_problem
    from planner.question.problem import Constraints, Objective, Workload
    from profiles.validation import read_document

    workload = read_document(Workload, {**job.workload, **asked.workload}, "/workload")
    constraints = Constraints(backends=(script_backend(job),))
    return asked_problem(job.model, cluster, workload, constraints, Objective(), profile)


def script_answer(asked: ScriptRequest, problem: Problem | None, plan: Plan | None) -> ScriptAnswer:
    """What the script says; its run on ``problem``, and beside ``plan``, where they are given.

    Raises FindingsInvalid, DocumentInvalid, also where the run does not hold together.
    """
    from planner.operations.estimate import estimated
    from planner.operations.script_run import held_to, why_not_script

    job = read_sent(asked)
    more: dict[str, Any] = {}
    if problem is not None:
        try:
            found = estimated(problem, script_strategy(job), job.chunk_layers, launched=True)
        except FindingsInvalid as error:
            # The fields are the script's: no part of the request is called so.
            raise DocumentInvalid(f"the run does not work: {error.what}", where="/text", hint=error.hint) from None
        more |= {"estimate": found.plan, "filled_in": found.filled_in}
    if plan is not None:
        why_not, held = why_not_script(plan, _said(asked))
        more |= {"why_not": why_not, "held_to": held_to(plan, held)}
    return ScriptAnswer(**_facts(job), name=asked.name, **more)


def _said(asked: ScriptRequest) -> SaidScript:
    said = (asked.variables, asked.arguments, asked.vocab_size, asked.devices)
    return SaidScript(asked.name, *said, asked.model, sent=asked.text, beside=asked.files)


def _facts(job: LaunchJob) -> dict[str, Any]:
    strategy = plain_strategy(job)
    return {
        "model": job.model,
        "vocabulary_from": _in_fields(job.vocabulary.told),
        "workload": dict(job.workload),
        "strategy": strategy,
        "pins": pins_text(strategy),
        "chunk_layers": job.chunk_layers,
        "backend": script_backend(job),
        "devices": job.num_devices,
        "derived": tuple(_in_fields(line) or "" for line in job.assumed),
        "arguments": ScriptArguments(**asdict(job.arguments)),
        "taken_as_unset": tuple(UnsetVariable(name=name, line=line) for name, line in job.taken_as_unset),
        "undecided": tuple(
            UndecidedPlace(line=each.line, what=each.what, say=_in_fields(each.say) or "") for each in job.undecided
        ),
        "left_out": job.skipped,
        "set_by_script": job.set_by_script,
        "launches": job.launches,
    }


def _in_fields(text: str | None) -> str | None:
    for flag, part in _FIELDS.items():
        text = text and text.replace(flag, part)
    return text


def _work(session: Session, asked: ScriptRequest) -> ScriptAnswer:
    from planner.operations.profile_choice import chosen_profile
    from planner.operations.question import cluster_of

    problem = None
    if asked.cluster is not None:
        job = read_sent(asked)
        cluster = cluster_of(asked.cluster, asked.devices or job.num_devices)
        problem = run_problem(asked, job, cluster, chosen_profile(asked.profile, cluster.pools[0].device))
    return script_answer(asked, problem, None if asked.plan is None else session.plan(asked.plan))


READ_SCRIPT = Operation(
    name="read_script",
    summary="Read a Megatron-LM launch script; predict its run; compare it with a plan",
    description="Model, workload, strategy and devices of a script that is sent as text, what became of each of its"
    " arguments, and the places that its text leaves open.  With `cluster` the run is estimated there, with `plan` it"
    " is the answer to why not mine.  The script is read, never run.",
    request=ScriptRequest,
    answer=ScriptAnswer,
    work=_work,
    path="/v1/scripts:read",
    method="POST",
    tag="questions",
    served="own",
    body=ScriptRequest,
)
