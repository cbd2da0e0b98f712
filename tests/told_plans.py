"""Everything that commands and the service tell of one question's plan, for tests that compare it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from planner.answers.views.step import step_view
from planner.cli.plan_answer import drawn_microbatches
from planner.operations.plan_reference import load_plan
from planner.plan.plan import Plan
from planner.plan.relief import asked_layers, relieves_every_layer, relieves_first
from planner.strategy.relief_layers import ReliefLayers, relief_word
from tests.command_line import run_here
from tests.plan_labels import Answers
from tests.shown_numbers import Cell, html_cells, markdown_cells, text_cells

LLAMA = ("--model", "llama-3.1-8b")
SMALL = ("--global-batch-size", "64", "--sequence-length", "4096", "--profile", "none")
QUESTIONS: dict[str, tuple[str, ...]] = {
    # Over all back-ends; another plan is the fastest.
    "dense": (
        *LLAMA, "--cluster", "dgx-h100", "--devices", "16", "--global-batch-size", "128", "--sequence-length", "8192",
        "--profile", "none",
    ),
    "experts": (
        "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--devices", "32", "--global-batch-size", "512",
        "--sequence-length", "4096", "--profile", "none", "--backend", "megatron", "--prefer", "fastest",
    ),
    "zero": (
        *LLAMA, "--cluster", "dgx-a100-80g", "--devices", "8", *SMALL, "--backend", "deepspeed",
        "--objective", "cost", "--price", "2.5",
    ),
    "sharded": (*LLAMA, "--cluster", "dgx-a100-80g", "--devices", "8", *SMALL, "--backend", "torchtitan"),
    # Too little memory: some layers are computed again, and the optimizer's states are kept by the host.
    "relieved": (
        *LLAMA, "--cluster", "dgx-a100-40g", "--devices", "8", "--global-batch-size", "64",
        "--sequence-length", "16384", "--profile", "none", "--backend", "megatron", "--pin", "pp=4",
    ),
}  # fmt: skip
WHY_NOT = {"dense": "tp=2,pp=2", "experts": "tp=4", "zero": "zero=1", "sharded": "recompute=full", "relieved": "tp=1"}
MONEY = {"zero": 2.5}
POOLS = (
    *LLAMA, "--pool", "dgx-a100-40g:8", "--pool", "dgx-h100:8", "--global-batch-size", "32",
    "--sequence-length", "2048", "--profile", "none",
)  # fmt: skip
SAME = 1e-9
"""How far two numbers that a program reads may be apart."""
Data = dict[str, Any]


def ran(*words: str) -> str:
    """What a command prints, as wide as it can be: nothing is folded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "400")
        done = run_here(*words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def ran_json(*words: str) -> Any:
    return json.loads(ran(*words, "--output", "json"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's plan: the document, and everything that commands and the service say of it."""

    name: str
    plan: Plan
    document: Data
    answers: Answers
    estimate: Answers
    """The same of the estimate of the plan's own strategy."""
    texts: Mapping[str, list[Cell]]
    data: Mapping[str, Any]


def asked(name: str, folder: Path, client: TestClient) -> Asked:
    """Plan, then ask every command and every address about the plan."""
    question, path, database = QUESTIONS[name], folder / f"{name}.json", ("--database", str(folder / "plans.db"))
    page, trace, out, sure = folder / f"{name}.html", folder / f"{name}.trace.json", folder / name, ("--quiet",)
    texts = {"plan": ran("plan", *question, *database, *sure)}
    written = ("--plan-out", str(path), "--trace", str(trace), "--emit", "best", "--out", str(out))
    data: Data = {"plan": ran_json("plan", *question, *database, *sure, *written, "--reuse")}
    plan_id = data["plan"]["plan_id"]
    document = json.loads(path.read_text())
    plan = load_plan(str(path), None)
    text = ",".join(f"{key}={words(value)}" for key, value in estimated_strategy(plan).items())
    # An estimate has no objective, and is of one strategy.
    more = next((question.index(word) for word in ("--objective", "--pin") if word in question), len(question))
    kept = question[:more]
    kept = tuple(word for word in kept if word not in {"--prefer", "fastest"})
    strategy = ("estimate", *kept, *(() if "--backend" in kept else ("--backend", document["backend"])), "-s", text)
    texts |= {
        "plans show": ran("plans", "show", plan_id, *database),
        "plans list": ran("plans", "list", *database),
        "explain": ran("explain", plan_id, *database, "--html", str(page)),
        "why not": ran("explain", plan_id, *database, "--why-not", WHY_NOT[name], *sure),
        "sensitivity": ran("sensitivity", plan_id, *database, "--no-replan", *sure),
        "estimate": ran(*strategy, *sure, "--plan-out", str(folder / f"{name}.estimate.json")),
    }
    data |= {
        "plans show": ran_json("plans", "show", plan_id, *database, "--full"),
        "plans list": ran_json("plans", "list", *database),
        "explain": ran_json("explain", plan_id, *database),
        "why not": ran_json("explain", plan_id, *database, "--why-not", WHY_NOT[name], *sure),
        "sensitivity": ran_json("sensitivity", plan_id, *database, "--no-replan", *sure),
        "diff with itself": ran_json("diff", plan_id, plan_id, *database),
        "estimate": json.loads((folder / f"{name}.estimate.json").read_text()),
        "export": json.loads(ran("plans", "export", plan_id, *database)),
        "plan.json": json.loads((out / "plan.json").read_text()),
        "manifest.json": json.loads((out / "manifest.json").read_text()),
        "trace": json.loads(trace.read_text()),
    }
    addresses = ("", "/explanation", "/timeline", "/memory", "/step", "/mesh", "/sensitivity", "/emissions", "/leaning")
    data |= {f"GET {address}": got(client, f"/v1/plans/{plan_id}{address}").json() for address in addresses}
    data["GET why_not"] = got(client, f"/v1/plans/{plan_id}/explanation?why_not={WHY_NOT[name]}").json()
    data["GET plans"] = got(client, "/v1/plans").json()["plans"]
    step = step_view(plan).model_dump(mode="json")
    answers = Answers(document, data["explain"], step, drawn(plan))
    cells = {title: text_cells(text) for title, text in texts.items()}
    cells["report"] = html_cells(page.read_text())
    cells["GET /report"] = html_cells(got(client, f"/v1/plans/{plan_id}/report").text)
    cells["PLAN.md"] = markdown_cells((out / "PLAN.md").read_text())
    estimate = estimated(folder / f"{name}.estimate.json", cells)
    return Asked(name, plan, document, answers, estimate, cells, data)


def _first_layers(plan: Plan) -> int:
    """The most layers of a chunk that recompute."""
    return max((count for stage in plan.stages for count in stage.recompute.num_layers_per_chunk), default=0)


def told_strategy(plan: Plan) -> Data:
    """A plan's strategy as the plan says it: with which layers recompute, in the words of its question."""
    return _with_layers(plan, "every" if relieves_every_layer(plan) else asked_layers(plan))


def estimated_strategy(plan: Plan) -> Data:
    """A plan's strategy as an estimate takes it: with which layers recompute, which the plan says stage by stage."""
    return _with_layers(plan, _first_layers(plan)) if _is_surer(plan) else told_strategy(plan)


def strategy_line(plan: Plan, title: str) -> str:
    """How the line of the strategy ends where nothing is left out: batches, and which layers recompute.

    A plan says it as its question did, a document whose ``title`` begins with *estimate* as it was asked.
    """
    strategy = estimated_strategy(plan) if title.startswith("estimate") else told_strategy(plan)
    micro = f"{strategy['num_microbatches']} micro-batches of {strategy['micro_batch_size']}"
    schedule = f", schedule {strategy['schedule']}" if strategy["pp"] > 1 else ""
    return f"{micro}{schedule}, recompute {strategy['recompute']}"


def _with_layers(plan: Plan, layers: ReliefLayers) -> Data:
    told = {key: relief_word(key, value, layers) for key, value in plan.strategy.items()}
    return {key: words(value) if isinstance(value, list) else value for key, value in told.items() if value != []}


def _is_surer(plan: Plan) -> bool:
    """Whether one number of first layers of every chunk recomputes: a surer plan may have more than memory demands."""
    number = _first_layers(plan)
    return number > 0 and not relieves_every_layer(plan) and relieves_first(plan, number)


def estimated(path: Path, cells: dict[str, list[Cell]]) -> Answers:
    """What an estimate's document says; ``cells`` gets what its explanation, its report and its ``PLAN.md`` show."""
    page, out, plan = path.with_suffix(".html"), path.with_suffix(".files"), load_plan(str(path), None)
    cells["estimate, explain"] = text_cells(ran("explain", str(path), "--html", str(page)))
    cells["estimate, report"] = html_cells(page.read_text())
    if plan.status != "infeasible":
        ran("emit", str(path), "--out", str(out), "--quiet")
        cells["estimate, PLAN.md"] = markdown_cells((out / "PLAN.md").read_text())
    explanation = ran_json("explain", str(path))
    return Answers(plan.model_dump(mode="json"), explanation, step_view(plan).model_dump(mode="json"), drawn(plan))


def got(client: TestClient, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200, response.text
    return response


def words(value: Any) -> str:
    return "+".join(value) if isinstance(value, list) else str(value).lower()


def drawn(plan: Plan) -> Data | None:
    """The step as the chart of a terminal has it, where that has fewer micro-batches."""
    shown = drawn_microbatches(plan)
    if shown == plan.chosen().num_microbatches:
        return None
    short = plan.model_copy(update={"strategy": {**plan.strategy, "num_microbatches": shown}})
    return step_view(short).model_dump(mode="json")


def unequal(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two documents differ, numbers by more than a billionth."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from unequal(one.get(key), other.get(key), f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from unequal(left, right, f"{place}/{index}")
    elif is_number(one) and is_number(other):
        if not math.isclose(one, other, rel_tol=SAME, abs_tol=1e-15):
            yield f"{place}: {one!r} and {other!r}"
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME, abs_tol=1e-15)
