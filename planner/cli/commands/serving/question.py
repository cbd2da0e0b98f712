"""The flags of a serving question, and the question that they make over one that a file holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from planner.cli import options as flags
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.operations.serving import ServingQuestion

Q = TypeVar("Q", bound="ServingQuestion")


class ObjectiveName(StrEnum):
    """What is the best."""

    THROUGHPUT = "throughput"
    CHEAPEST = "cheapest"
    PARETO = "pareto"
    FEWEST_DEVICES = "fewest_devices"


class DisaggregationName(StrEnum):
    """Whether prefill and decode run on instances of their own."""

    ANY = "any"
    NEVER = "never"
    ALWAYS = "always"


QuestionFile = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The question as YAML or JSON; flags replace its parts.")
]
Model = Annotated[
    str | None, typer.Option("--model", "-m", metavar="M", help="HF config.json, model YAML, or a built-in name.")
]
ClusterFlag = Annotated[
    str | None, typer.Option("--cluster", "-c", metavar="C", help="Cluster YAML or a built-in name.")
]
LENGTHS_HELP = "4000, 100:8000, mean:4000+spread:0.6 or p50:900+p90:4000."
InputTokens = Annotated[
    str | None, typer.Option("--input-tokens", metavar="LENGTHS", help=f"Of a request: {LENGTHS_HELP}")
]
OutputTokens = Annotated[
    str | None, typer.Option("--output-tokens", metavar="LENGTHS", help="The same for its output.")
]
Requests = Annotated[
    Path | None,
    typer.Option("--requests", metavar="FILE", help="Lengths and arrivals of served requests: JSON lines or CSV."),
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="N", help="Requests in flight at the whole deployment.")
]
RequestsPerS = Annotated[
    float | None, typer.Option("--requests-per-s", metavar="R", help="Requests that arrive a second, at random.")
]
PrefixShare = Annotated[
    float | None, typer.Option("--prefix-share", metavar="X", help="Part of the input that the prefix cache holds.")
]
Ttft = Annotated[float | None, typer.Option("--ttft-ms", metavar="MS", help="Promise: time to the first token.")]
Tpot = Annotated[float | None, typer.Option("--tpot-ms", metavar="MS", help="Promise: time of each further token.")]
EndToEnd = Annotated[float | None, typer.Option("--end-to-end-s", metavar="S", help="Promise: time to the last token.")]
Percentile = Annotated[
    float | None, typer.Option("--percentile", metavar="P", help="Of requests that see the promises kept (default 50).")
]
ObjectiveFlag = Annotated[ObjectiveName | None, typer.Option("--objective", help="What is the best.")]
EngineFlag = Annotated[
    list[str] | None, typer.Option("--engine", metavar="E[==RELEASE]", help="vllm, sglang, tensorrt-llm. Repeatable.")
]
DisaggregationFlag = Annotated[
    DisaggregationName | None, typer.Option("--disaggregation", help="Prefill and decode on instances of their own.")
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weights", metavar="F", help="Formats that weights may have (default: the checkpoint's). Repeatable."
    ),
]
KvCache = Annotated[
    list[str] | None, typer.Option("--kv-cache", metavar="F", help="Formats of keys and values. Repeatable.")
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint", metavar="F[,EXPERTS]", help="How the checkpoint stores weights (default: as its config)."
    ),
]
PinFlag = Annotated[
    list[str] | None, typer.Option("--pin", metavar="NAME=VALUE,...", help="Fix fields of every instance: tp=8.")
]
MaxDevices = Annotated[int | None, typer.Option("--max-devices", metavar="N", help="The most devices to use.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFlags:
    """What the command line says about a serving question; None = not said."""

    model: Model = None
    cluster: ClusterFlag = None
    devices: flags.Devices = None
    input_tokens: InputTokens = None
    output_tokens: OutputTokens = None
    requests: Requests = None
    concurrency: Concurrency = None
    requests_per_s: RequestsPerS = None
    prefix_share: PrefixShare = None
    ttft_ms: Ttft = None
    tpot_ms: Tpot = None
    end_to_end_s: EndToEnd = None
    percentile: Percentile = None
    objective: ObjectiveFlag = None
    engine: EngineFlag = None
    disaggregation: DisaggregationFlag = None
    weights: Weights = None
    kv_cache: KvCache = None
    checkpoint: Checkpoint = None
    pin: PinFlag = None
    max_devices: MaxDevices = None


PARTS = ("traffic", "promised", "constraints")
NOTHING_ASKED: Any = ServingFlags()


def question_of(file: Path | None, said: ServingFlags, kind: type[Q], **more: Any) -> Q:
    """The question of a file and of flags, which replace its parts.  Raises DocumentInvalid, NotFound."""
    from planner.operations.reading import read_yaml
    from profiles.validation import read_document

    data: Any = {} if file is None else read_yaml(file)
    if not isinstance(data, dict):
        raise DocumentInvalid("a serving question is a mapping", where=str(file), hint="model, cluster, traffic, ...")
    data = dict(data)
    for name in PARTS:
        if not isinstance(data.get(name) or {}, dict):
            raise DocumentInvalid(f"{name} is a mapping", where=f"{file}#/{name}", hint=f"give the keys of {name}")
    _read_lengths(data, str(file))
    _check(said)
    for name, value in (("model", said.model), ("cluster", said.cluster), ("devices", said.devices)):
        if value is not None:
            data[name] = value
    _put(data, "traffic", _traffic(said))
    _put(data, "promised", _promised(said))
    _put(data, "constraints", _constraints(said))
    if said.objective is not None:
        data["objective"] = said.objective.value
    if said.checkpoint is not None:
        weights, _, experts = said.checkpoint.partition(",")
        data |= {"checkpoint": weights.strip(), "expert_checkpoint": experts.strip() or None}
    missing = [f"--{name}" for name in ("model", "cluster") if name not in data]
    traffic = data.get("traffic") or {}
    missing += [f"--{name.replace('_', '-')}" for name in ("input_tokens", "output_tokens") if name not in traffic]
    if missing:
        hint = f"give a question FILE, or {' and '.join(missing)}"
        raise DocumentInvalid("the question is not complete", where=" ".join(missing), hint=hint)
    return read_document(kind, {**data, **more}, "the flags" if file is None else str(file))


def _read_lengths(data: dict[str, Any], where: str) -> None:
    """Lengths of a question's file may be written as on the command line: ``input_tokens: 4000``."""
    from planner.serving.lengths_text import parse_lengths

    traffic = dict(data.get("traffic") or {})
    for name in ("input_tokens", "output_tokens"):
        said = traffic.get(name)
        if isinstance(said, int | float | str) and not isinstance(said, bool):
            traffic[name] = parse_lengths(str(said), f"{where}#/traffic/{name}")
    if traffic:
        data["traffic"] = traffic


def _check(said: ServingFlags) -> None:
    """Refuse numbers that mean nothing, in the flags' own names.  Raises DocumentInvalid."""
    from planner.cli.problem_inputs import positive

    for name in ("concurrency", "requests_per_s", "ttft_ms", "tpot_ms", "end_to_end_s", "max_devices"):
        positive(getattr(said, name), f"--{name.replace('_', '-')}")
    if said.concurrency is not None and said.requests_per_s is not None:
        what = "requests either stay in flight or arrive at random"
        raise DocumentInvalid(what, where="--concurrency --requests-per-s", hint="give one of the two")


def _put(data: dict[str, Any], name: str, said: dict[str, Any]) -> None:
    """Overlay a part of the question with what flags say; a given load replaces the file's."""
    own = dict(data.get(name) or {})
    loads = {"concurrency", "requests_per_s", "all_at_once"}
    if loads & set(said):
        own = {key: value for key, value in own.items() if key not in loads}
    if said:
        data[name] = {**own, **said}


def _traffic(said: ServingFlags) -> dict[str, Any]:
    from planner.operations.reading import read_text
    from planner.serving.lengths_text import parse_lengths
    from planner.serving.request_trace import read_request_trace

    found: dict[str, Any] = {}
    if said.requests is not None:
        trace = read_request_trace(read_text(said.requests), str(said.requests))
        found = {"input_tokens": trace.input_tokens, "output_tokens": trace.output_tokens}
        if trace.requests_per_s is not None and said.concurrency is None:
            found["requests_per_s"] = trace.requests_per_s
    for name, text in (("input_tokens", said.input_tokens), ("output_tokens", said.output_tokens)):
        if text is not None:
            found[name] = parse_lengths(text, f"--{name.replace('_', '-')}")
    for name in ("concurrency", "requests_per_s", "prefix_share"):
        if getattr(said, name) is not None:
            found[name] = getattr(said, name)
    return found


def _promised(said: ServingFlags) -> dict[str, Any]:
    found = {
        "ttft_s": None if said.ttft_ms is None else said.ttft_ms / 1e3,
        "tpot_s": None if said.tpot_ms is None else said.tpot_ms / 1e3,
        "end_to_end_s": said.end_to_end_s,
        "percentile": said.percentile,
    }
    return {name: value for name, value in found.items() if value is not None}


def _constraints(said: ServingFlags) -> dict[str, Any]:
    from planner.serving.text import parse_fields

    found: dict[str, Any] = {
        "engines": _words(said.engine),
        "weights": _words(said.weights),
        "kv_cache": _words(said.kv_cache),
        "disaggregation": None if said.disaggregation is None else said.disaggregation.value,
        "max_devices": said.max_devices,
        "pins": parse_fields(",".join(said.pin), "--pin") if said.pin else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _words(said: list[str] | None) -> list[str] | None:
    return None if said is None else [word.strip() for each in said for word in each.split(",") if word.strip()]
