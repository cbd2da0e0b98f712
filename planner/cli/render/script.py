"""A launch script for people: what was read, what became of its arguments, and its run beside a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from planner.answers.views.words import gib, seconds
from planner.cli.render.tables import facts, heading, table
from planner.question.training import Training
from planner.strategy.fields import value_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.operations.script_run import Compared


def script_report(said: Mapping[str, Any], name: str) -> Iterator[RenderableType]:
    """The fields, then the lists; ``said`` is ``script_facts``."""
    yield heading(f"Read from {name}")
    model = {key: value for key, value in said["model"].items() if key != "vocabulary_from"}
    devices = said["num_devices"]
    yield facts(
        [
            ("model", _fields(model)),
            ("vocabulary", said["model"]["vocabulary_from"]),
            ("work", _fields(said["workload"])),
            ("strategy", _fields(said["strategy"])),
            ("devices", "not said (--devices N; else those of the cluster)" if devices is None else f"{devices:,}"),
            *(("derived", line) for line in said["derived"]),
            *_lists(said["arguments"], said["software"]),
            *_open_places(said),
        ]
    )


def _fields(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_words(key, value)}" for key, value in values.items()) or "nothing"


def _words(key: str, value: Any) -> str:
    return Training.model_validate(value).words() if key == "training" else value_words(value)


def _lists(lists: Mapping[str, list[str]], software: str) -> Iterator[tuple[str, str]]:
    parsers = "Megatron-LM 0.19.2" if software != "mindspeed" else "MindSpeed, MindSpeed-LLM or Megatron-LM"
    used, harmless = len(lists["used"]), len(lists["no_influence"])
    yield (
        "arguments",
        f"{used} used, {harmless} without influence on the plan, {len(lists['not_modelled'])} not modelled",
    )
    for written in lists["not_modelled"]:
        yield "not modelled", written
    for written in lists["unknown"]:
        yield "not known", f"{written} (no argument of {parsers})"


def _open_places(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in said["undecided"]:
        yield "undecided", f"line {each['line']}: {each['what']}; {each['say']}"
    for written in said["left_out"]:
        yield "left out", f"{written} (added only on an undecided condition)"
    unset = [(each["name"], f"{each['name']} (line {each['line']})") for each in said["taken_as_unset"]]
    if variables := ", ".join(told for name, told in unset if not name.startswith("$")):
        yield "taken as not set", f"{variables}; --set VAR=VALUE sets one"
    if arguments := ", ".join(told for name, told in unset if name.startswith("$")):
        yield "taken as not given", f"{arguments}; -- ARGS or --script-args TEXT gives them"
    for name in said["set_by_script"]:
        yield "set by the script", f"{name}, whatever --set says"
    if said["launches"] > 1:
        yield "runs", f"{said['launches']} are started, the first is read"


def compared_report(compared: Compared) -> Iterator[RenderableType]:
    """Yours and ours, field by field, time and memory of both."""
    yield heading("Yours and ours")
    if compared.yours is None:
        yield facts([("yours", f"cannot run so: {compared.reason}")])
        return
    rows = [(each.field, value_words(each.a), value_words(each.b)) for each in compared.strategy]
    yours, ours = compared.yours, compared.ours
    rows += [
        ("back-end", yours.backend, ours.backend),
        ("step", seconds(yours.step_time_s), seconds(ours.step_time_s)),
        ("memory", gib(yours.peak_memory_bytes), gib(ours.peak_memory_bytes)),
        ("fits", "no" if yours.status == "infeasible" else "yes", "yes"),
    ]
    yield table("", ("", ">yours", ">ours"), rows)
