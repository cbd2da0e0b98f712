"""The flags of RL questions, and the question that they and a file say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.key_values import key_values
from planner.errors import DocumentInvalid
from planner.operations.reading import read_yaml

if TYPE_CHECKING:
    from planner.rl.deployment import RlDeployment
    from planner.rl.problem import RlProblem

LENGTHS = "N, or mean=N, p50=N, p99=N for a distribution, for example mean=1200,p99.9=4000"
Question = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The question as YAML or JSON; flags override it.")
]
Model = Annotated[str | None, typer.Option("--model", "-m", metavar="M", help="The actor: a file or a built-in name.")]
Cluster = Annotated[str | None, typer.Option("--cluster", "-c", metavar="C", help="Cluster YAML or a built-in name.")]
Algorithm = Annotated[
    str | None,
    typer.Option("--algorithm", metavar="A", help="ppo, grpo (default), dapo, rloo, reinforce++, distillation."),
]
Prompts = Annotated[int | None, typer.Option("--prompts", metavar="N", help="Prompts of a step.")]
Samples = Annotated[int | None, typer.Option("--samples", metavar="N", help="Responses to each prompt.")]
PromptTokens = Annotated[str | None, typer.Option("--prompt-tokens", metavar="LENGTHS", help=f"{LENGTHS}.")]
ResponseTokens = Annotated[str | None, typer.Option("--response-tokens", metavar="LENGTHS", help="The same.")]
Longest = Annotated[
    int | None, typer.Option("--longest-response", metavar="N", help="Tokens at which a response is cut.")
]
MiniBatches = Annotated[int | None, typer.Option("--mini-batches", metavar="N", help="Optimizer steps of an epoch.")]
Placement = Annotated[
    list[str] | None, typer.Option("--placement", metavar="P", help="colocated, split; more than once for both.")
]
Synchrony = Annotated[
    list[str] | None,
    typer.Option("--synchrony", metavar="S", help="synchronous, one_step_off, asynchronous; repeat for several."),
]
Staleness = Annotated[
    float | None, typer.Option("--staleness", metavar="F", help="Asynchronous: part of a step's samples ahead.")
]
Trainer = Annotated[
    list[str] | None, typer.Option("--trainer", metavar="T", help="fsdp2, megatron; more than once for both.")
]

Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write launch files for verl.")]
ModelPath = Annotated[
    str | None, typer.Option("--model-path", metavar="PATH", help="Weights, as verl finds them (default: the model).")
]


def write_verl(problem: RlProblem, deployment: RlDeployment, out: Path, model_path: str) -> Path:
    """Write the folder.  Raises DocumentInvalid with what verl cannot say, Conflict for a folder of others."""
    from planner.backends.emission.write import write_folder
    from planner.rl.frameworks.verl.write import verl_folder

    folder = verl_folder(problem, deployment, model_path)
    return write_folder(folder.files, folder.executables, folder.manifest, out)


def question_data(file: Path | None, **said: Any) -> tuple[dict[str, Any], str]:
    """The question as data, and where it was said.  Raises DocumentInvalid."""
    data: dict[str, Any] = {}
    if file is not None:
        read = read_yaml(file)
        if not isinstance(read, dict):
            raise DocumentInvalid("a question has named parts", where=str(file), hint="write `prompts: 128` and so on")
        data = dict(read)
    constraints = data.get("constraints") or {}
    if not isinstance(constraints, dict):
        raise DocumentInvalid(
            f"constraints are named, not {constraints!r}",
            where=f"{file}#/constraints",
            hint="write `constraints: {placements: [colocated]}` and so on",
        )
    constraints = dict(constraints)
    for name in ("placements", "synchrony", "trainers"):
        if said.get(name):
            constraints[name] = said.pop(name)
    for name in ("prompt_tokens", "response_tokens"):
        if said.get(name) is not None:
            said[name] = lengths_of(said[name], "--" + name.replace("_", "-"))
    data |= {name: value for name, value in said.items() if value not in (None, [])}
    if constraints:
        data["constraints"] = constraints
    for name, flag in (("model", "--model"), ("cluster", "--cluster")):
        if not data.get(name):
            raise DocumentInvalid(f"no {name} is said", where=flag, hint=f"give {flag}, or `{name}:` in the file")
    return data, str(file or "flags")


def lengths_of(text: str, flag: str) -> dict[str, Any]:
    """The document of ``planner.question.sequences.Sequences`` that a flag means.  Raises DocumentInvalid."""
    hint = f"give {LENGTHS}"
    if text.isdigit():
        return {"kind": "padded", "histogram": [(float(text), 1.0)]}
    said: dict[str, Any] = {"kind": "padded"}
    for name, value in key_values(text.split(","), flag, hint).items():
        try:
            number = float(value)
        except ValueError:
            raise DocumentInvalid(f"{value!r} is no number", where=flag, hint=hint) from None
        if name == "mean":
            said["mean"] = number
        elif name.startswith("p") and name[1:].replace(".", "", 1).isdigit():
            said.setdefault("percentiles", []).append((float(name[1:]), number))
        else:
            raise DocumentInvalid(f"{name!r} is neither mean nor a percentile", where=flag, hint=hint)
    return said
