"""The job that a Megatron-LM launch script (or argument string) describes.

``megatron_job`` reads the text that you run today: continuation lines, comments and the script's own variables are
resolved (``planner.model.shell``), nothing is executed.  It returns the model, what of the workload is given,
and the strategy's degrees and switches as given.

Shapes follow Megatron-Core ``GPTModel``: pre-norm layers, biases unless ``--disable-bias-linear``, tied embeddings
unless ``--untie-embeddings-and-output-weights``, a vocabulary padded to a multiple of
``make_vocab_size_divisible_by * tp``.  The latent norms of MLA are always counted; Megatron builds them with
``--qk-layernorm``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from planner.model import megatron_deepspeed_words, mindspeed_words
from planner.model.layer_runs import runs_of
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_layers import read_layers
from planner.model.megatron_split import uneven
from planner.model.megatron_strategy import derive, read_strategy, read_workload
from planner.model.megatron_unmodelled import ArgumentLists, argument_lists, refuse_other_models
from planner.model.megatron_vocabulary import Vocabulary, read_vocabulary
from planner.model.mindspeed_words import is_mindspeed, own_strategy
from planner.model.shell.launches import NOTHING, Given, Launch, launch_of
from planner.model.shell.scope import Undecided
from planner.model.shell.slurm import devices_of_job
from planner.model.shell.tree import ShellSyntaxError
from planner.model.spec import ModelSpec, MtpSpec, PositionKind
from profiles.errors import DocumentInvalid
from profiles.text_limits import check_size

_POSITIONS: dict[str, PositionKind] = {
    "learned_absolute": "learned",
    "rope": "rope",
    "yarn": "rope",
    "mrope": "rope",
    "alibi": "alibi",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class LaunchJob:
    """What a launch script says.

    ``workload``: keyword arguments of ``Workload`` that are given (global_batch_size, sequence_length, precision...).
    ``strategy``: fields of ``Strategy`` that are given (tp, pp, ...), as for ``Constraints.pins``.
    ``num_devices``: nodes times processes a node, where both are given.
    ``skipped``: arguments that the script adds only on a condition; they are not used.
    ``chunk_layers``: layers of every chunk along the model, where the script does not leave them to Megatron.
    ``arguments``: those of the training program, each in one list: used, without influence, not modelled, unknown.
    ``vocabulary``: the padded size and where it is from.
    ``assumed``: what Megatron-LM derives because the script leaves it out, as sentences.
    ``undecided``: places of the script that its text does not decide, and what would decide them.
    ``taken_as_unset``: environment variables that the script asks for and nobody gave, with the line.
    ``launches``: training runs that the script starts; the first is read.
    ``set_by_script``: variables that were given and that the script sets itself all the same.
    ``software``: the back-end that runs it.
    ``megatron_defaults``: whether what ``strategy`` leaves out is what Megatron-LM's arguments have by default.
    """

    model: ModelSpec
    workload: dict[str, Any] = field(default_factory=dict)
    strategy: dict[str, Any] = field(default_factory=dict)
    num_devices: int | None = None
    skipped: tuple[str, ...] = ()
    chunk_layers: tuple[int, ...] | None = None
    arguments: ArgumentLists = field(default_factory=ArgumentLists)
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary(1, ""))
    assumed: tuple[str, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    taken_as_unset: tuple[tuple[str, int], ...] = ()
    launches: int = 0
    set_by_script: tuple[str, ...] = ()
    software: str = "megatron"
    megatron_defaults: bool = False


def megatron_job(
    text: str,
    name: str,
    where: str,
    given: Given = NOTHING,
    vocab_size: int | None = None,
    num_devices: int | None = None,
) -> LaunchJob:
    """Read a launch script or argument string.

    ``given``: the script's environment, arguments and neighbours.  ``vocab_size``: tokens of the tokenizer; it wins
    over what the script says of its vocabulary, and ``vocabulary`` says so.  ``num_devices``: other than the script's.
    Raises ``FindingsInvalid`` with every argument that is missing, impossible or not decided by the text, and
    ``DocumentInvalid`` for a text that is no script.
    """
    launch = read_launch(text, where, given)
    require_start(launch, where)
    return job_of_launch(launch, text, name, where, given, vocab_size, num_devices)


def read_launch(text: str, where: str, given: Given = NOTHING) -> Launch:
    """The first run that a script starts, or the words of a file of arguments.  Raises DocumentInvalid."""
    check_size(text, where)
    if _is_arguments_file(text):
        return Launch(_plain_words(text))
    try:
        return launch_of(text, given)
    except ShellSyntaxError as error:
        raise DocumentInvalid(f"line {error.line} of the script: {error.what}", where=where) from None


def job_of_launch(  # noqa: PLR0917  # the parts of one script
    launch: Launch,
    text: str,
    name: str,
    where: str,
    given: Given = NOTHING,
    vocab_size: int | None = None,
    num_devices: int | None = None,
) -> LaunchJob:
    """The job of a launch of Megatron-LM, MindSpeed or Megatron-DeepSpeed; ``text``: the script that starts it.

    Raises as ``megatron_job``.
    """
    _refuse_others(launch, where)
    written = MegatronFlags(launch.words, where)
    software = script_software(written, text)
    flags = written if software == "megatron" else _in_megatron_words(launch.words, where, software, text)
    refuse_other_models(flags)
    workload = read_workload(flags)
    strategy, chunk_layers, launched = read_strategy(flags)
    if software == "mindspeed":
        strategy |= own_strategy(flags)
    if software == "deepspeed":
        workload |= megatron_deepspeed_words.own_workload(text)
    num_devices = num_devices or launched or devices_of_job(text, given.variables)
    vocabulary = read_vocabulary(flags, int(strategy.get("tp", 1)), vocab_size)
    try:
        model = megatron_model(flags, name, vocabulary.padded, workload.get("sequence_length"))
    except ValidationError as error:
        flags.finish()
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise DocumentInvalid(f"the arguments do not describe a possible model: {message}", where=where) from None
    flags.finish()
    assumed = derive(flags, model, workload, strategy, num_devices)
    if "deepspeed" not in software:  # DeepSpeed's pipeline engine balances what does not divide
        assumed += uneven(model.num_layers, strategy, chunk_layers)
    return LaunchJob(
        model,
        workload,
        strategy,
        num_devices,
        launch.skipped,
        chunk_layers,
        arguments=argument_lists(written, launch.words, software),
        vocabulary=vocabulary,
        assumed=assumed,
        undecided=launch.undecided,
        taken_as_unset=launch.taken_as_unset,
        launches=launch.count,
        set_by_script=launch.set_by_script,
        software=software,
        megatron_defaults=True,
    )


def script_software(flags: MegatronFlags, text: str) -> str:
    """The back-end that runs a launch of these arguments."""
    if is_mindspeed(flags, text):
        return "mindspeed"
    return megatron_deepspeed_words.software_of(flags) or "megatron"


def _in_megatron_words(words: Sequence[str], where: str, software: str, text: str) -> MegatronFlags:
    """The arguments of a launch of MindSpeed or Megatron-DeepSpeed, as Megatron-LM's."""
    if software == "mindspeed":
        spelled, findings = mindspeed_words.megatron_words(words, where)
    else:
        spelled, findings = megatron_deepspeed_words.megatron_words(words, where, text)
    flags = MegatronFlags(spelled, where)
    flags.findings += findings
    return flags


def _is_arguments_file(text: str) -> bool:
    """Whether the text is a file such as our ``megatron.args``: nothing but lines of arguments, nothing quoted.

    A program splits such a file at blanks, so ``Et*3|t*5L`` needs no quotes there, which a shell would ask for.
    Comments may hold anything.
    """
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith("#")]
    return all(line.startswith("--") and not re.search(r"[\\'\"$`;&]", line) for line in said)


def _plain_words(text: str) -> tuple[str, ...]:
    lines = (line.split() for line in text.splitlines())
    return tuple(word for words in lines if words and not words[0].startswith("#") for word in words)


def require_start(launch: Launch, where: str) -> None:
    """Raise DocumentInvalid for a script that ends before it starts a training run."""
    if launch.stopped_at is not None and not any(word.startswith("--num-layers") for word in launch.words):
        raise DocumentInvalid(
            f"the script ends at line {launch.stopped_at} before it starts a training run",
            where=where,
            hint="say what it asks for: --from SCRIPT with --set NAME=VALUE, or --script-args TEXT",
        )


def _refuse_others(launch: Launch, where: str) -> None:
    """Raise DocumentInvalid for a script whose commands are no training program that is known."""
    names = MegatronFlags(launch.words, where).names
    named = sorted(name for name in names if name.endswith(("model-name-or-path", "model-name", "model-path")))
    if launch.count and named and not names & {"num-layers", "hidden-size"}:
        program = next((word for word in launch.words if word.endswith(".py")), "the program")
        raise DocumentInvalid(
            f"{program} takes its model from --{named[0]} and its strategy from arguments of its own, which are not"
            " known",
            where=where,
            hint="say its run: meshwright estimate --model M --strategy tp=8,zero_stage=3,...",
        )
    if launch.count == 0 and launch.others and not any(word.startswith("--num-layers") for word in launch.words):
        name, line = launch.others[0]
        more = f", and {len(launch.others) - 1} more" if len(launch.others) > 1 else ""
        raise DocumentInvalid(
            f"the script starts no training program that is known: line {line}: {name}{more}",
            where=where,
            hint="give the script that this command runs, with its variables: --from THAT --set NAME=VALUE -- ARGS",
        )


def megatron_model(flags: MegatronFlags, name: str, vocab_size: int, sequence_length: int | None) -> ModelSpec:
    """The model that arguments describe; findings are recorded.  Raises ValidationError for an impossible one."""
    hidden = flags.required("hidden-size")
    num_layers = flags.required("num-layers", maximum=10_000)
    layers = read_layers(flags, hidden, num_layers)
    kinds, runs = runs_of(layers)
    positions = flags.integer("max-position-embeddings") or sequence_length or 1
    position = _position(flags)
    if position == "learned" and not flags.has("max-position-embeddings"):
        flags.refuse("max-position-embeddings", "is missing", "add it: learned positions need a table size")
    mtp = flags.integer("mtp-num-layers", minimum=0)
    return ModelSpec(
        name=name or "megatron",
        family="megatron",
        hidden_size=hidden,
        vocab_size=vocab_size,
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=not flags.has("untie-embeddings-and-output-weights"),
        learned_positions=positions if position == "learned" else 0,
        max_sequence_length=positions,
        mtp=MtpSpec(num_layers=mtp, kind=kinds.index(layers[-1]), count_in_parameters=True) if mtp else None,
        activation_function=_activation(flags),
        position=position,
        rotary_base=flags.number("rotary-base", default=10000.0),
        norm_epsilon=flags.number("norm-epsilon", "layernorm-epsilon", default=1e-5),
    )


def _position(flags: MegatronFlags) -> PositionKind:
    text = flags.text("position-embedding-type") or "learned_absolute"
    if flags.has("use-rotary-position-embeddings"):
        return "rope"
    if flags.has("no-position-embedding") and text == "learned_absolute":
        return "none"
    if text not in _POSITIONS:
        flags.refuse("position-embedding-type", f"'{text}' is not supported", f"use one of {', '.join(_POSITIONS)}")
    return _POSITIONS.get(text, "rope")


def _activation(flags: MegatronFlags) -> str:
    if flags.has("swiglu"):
        return "silu"
    if flags.has("squared-relu"):
        return "relu2"
    return "quick_gelu" if flags.has("quick-geglu") else "gelu"
