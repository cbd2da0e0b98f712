"""``meshwright serving explain``: a plan again, and why not another deployment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import NotFound

if TYPE_CHECKING:
    from planner.operations.serving import ServingEstimateRequest
    from planner.serving.plan import ServingPlan

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan that serving plan --out wrote.")]
WhyNot = Annotated[
    str | None, typer.Option("--why-not", metavar="GROUPS", help="Another deployment: 2*tp=4, prefill:...+decode:...")
]
EngineFlag = Annotated[
    str | None, typer.Option("--engine", metavar="E[==RELEASE]", help="Its engine (default: that of the plan).")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("explain")(explain)


def explain(
    plan: PlanFile,
    why_not: WhyNot = None,
    engine: EngineFlag = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Why a deployment is the best; with --why-not, what another one lacks."""
    from planner.cli.commands.serving.tables import plan_tables, why_not_tables
    from planner.operations.service import opened_service
    from planner.operations.serving import SERVING_ESTIMATE
    from planner.serving.search.explain import lag_words

    found = read_plan(plan)
    if why_not is None:
        write_answer(found.model_dump(mode="json", exclude={"problem"}), output, lambda: plan_tables(found))
        return
    with opened_service(None) as service:
        other = service.call(SERVING_ESTIMATE, _other(found, why_not, engine))
    words = lag_words(found, other.line, other.refused)
    data = {"why_not": words, "refused": other.refused, "line": other.line.model_dump(mode="json")}
    write_answer(data, output, lambda: why_not_tables(found, other, words))


def read_plan(path: Path) -> ServingPlan:
    """A plan file.  Raises NotFound, DocumentInvalid."""
    from planner.operations.reading import read_json
    from planner.serving.plan import ServingPlan
    from profiles.validation import read_document

    return read_document(ServingPlan, read_json(path), str(path))


def _other(found: ServingPlan, why_not: str, engine: str | None) -> ServingEstimateRequest:
    from planner.operations.serving import ServingEstimateRequest
    from planner.serving.text import parse_groups
    from planner.serving.words import ENGINES

    best, problem = found.best.deployment, found.problem
    name, _, release = (engine or f"{best.engine}=={best.release}").partition("==")
    if name not in ENGINES:
        raise NotFound(f"there is no engine {name!r}", where="--engine", hint=f"one of {', '.join(ENGINES)}")
    return ServingEstimateRequest.model_validate(
        {
            "model": problem.model.model_dump(mode="json"),
            "cluster": problem.cluster.model_dump(mode="json"),
            "traffic": problem.traffic,
            "promised": problem.promised,
            "constraints": problem.constraints.model_copy(update={"kv_cache": (best.formats.kv_cache,)}),
            "checkpoint": problem.checkpoint,
            "expert_checkpoint": problem.expert_checkpoint,
            "engine": name,
            "release": release or None,
            "groups": parse_groups(why_not, "--why-not"),
        }
    )
