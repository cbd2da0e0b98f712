"""No page, table or JSON of one plan shows two values for one quantity.

Each question is asked once.  Then every document about its plan is read: what a program reads must be equal, what a
person reads must be equal as it is rounded.  A number with a unit that no label explains is a finding too, so that a
new line of a table cannot escape.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from planner.predict.memory.fit_chance import fits_probability
from tests.command_line import run_here
from tests.compared_labels import (
    difference_quantities,
    is_memory_term,
    pools_quantities,
    sensitivity_quantities,
    why_not_quantities,
)
from tests.plan_labels import Labelled, Told, agrees, in_gib, is_told, layers_told, quantity_of
from tests.running_service import service
from tests.shown_numbers import Cell, assignments_of, numbers_of, text_cells
from tests.told_plans import (
    MONEY,
    POOLS,
    QUESTIONS,
    SAME,
    Asked,
    asked,
    estimated,
    estimated_strategy,
    near,
    ran,
    ran_json,
    strategy_line,
    unequal,
)

pytestmark = pytest.mark.slow
NS = 1e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one-value")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with service(str(folder / "plans.db")) as client:
        yield client


@pytest.fixture(scope="module")
def ask(folder: Path, client: TestClient) -> Callable[[str], Asked]:
    return cache(lambda name: asked(name, folder, client))


def read(title: str, cells: list[Cell], subject: Callable[[Cell], Told]) -> tuple[list[str], Counter[str]]:
    """What contradicts the machine-readable answers, or has no label; and how often each quantity was found."""
    wrong, found = list[str](), Counter[str]()
    for cell in cells:
        whose, quantities, strategy = subject(cell)
        if whose == "stage" and cell.column == "layers":
            layers = next(each for each in quantities if each.name.endswith(", layers"))
            found["layers of a stage"] += 1
            wrong += [f"{title}: {layers.value} layers, not {cell}"] * (layers_told(cell.text) != layers.value)
            continue
        for shown in numbers_of(cell):
            number = in_gib(shown) if not shown.unit and is_memory_term(cell.column) else shown
            quantity = quantity_of(number, quantities)
            if quantity is None:
                wrong += [f"{title}: no label of the {whose} explains {number}"] if number.unit else []
                continue
            found[quantity.name] += 1
            if not agrees(number, quantity):
                wrong.append(f"{title}: {quantity.name} is {quantity.value!r}, not {number}")
        for name, value in assignments_of(cell):
            if strategy is None:
                break
            told = is_told(strategy, name, value)
            found[f"strategy, {name}"] += told is not None
            if told is False:
                wrong.append(f"{title}: {name}={value} is not the strategy of the {whose}: {cell}")
    return wrong, found


FEWEST = {
    "plan": 40, "plans show": 40, "plans list": 3, "explain": 45, "report": 70, "GET /report": 70, "PLAN.md": 35,
    "why not": 20, "sensitivity": 50, "estimate": 30, "estimate, explain": 45, "estimate, report": 60,
    "estimate, PLAN.md": 30,
}  # fmt: skip
"""Labelled numbers that a document has at least."""
OFTEN = {
    "step_time_s": 10, "lower_bound_s": 5, "gap": 6, "model_flops_utilization": 6, "fits_probability": 8,
    "peak_memory_bytes": 6, "memory_limit_bytes": 12, "tokens_per_s": 4, "tokens_per_s_per_device": 5,
    "interval, low end": 5, "interval, high end": 5, "num_microbatches": 6, "micro_batch_size": 6, "num_devices": 4,
    "enumerated": 4, "evaluated": 4, "breakdown_s.compute": 8, "share of compute": 8, "breakdown_s.optimizer": 8,
    "alternatives[0].step_time_s": 4, "alternatives[0].slower_by": 5, "strategy, tp": 6, "strategy, pp": 6,
    "strategy, dp": 6, "strategy, zero": 6, "layers of a stage": 5, "global_batch_size": 4, "sequence_length": 4,
}  # fmt: skip
"""How often the documents of one plan tell a quantity at least."""


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_printed_number_is_the_value_of_its_label(name: str, ask: Callable[[str], Asked]) -> None:
    it = ask(name)
    subjects: dict[str, Callable[[Cell], Told]] = {
        "why not": lambda cell: ("why not", why_not_quantities(cell, it.data["why not"]), None),
        "sensitivity": lambda cell: ("sensitivity", sensitivity_quantities(cell, it.data["sensitivity"]), None),
        **{title: it.estimate.subject for title in it.texts if title.startswith("estimate")},
    }
    wrong, found = list[str](), Counter[str]()
    for title, cells in it.texts.items():
        mine = [cell for cell in cells if cell.row == it.plan.plan_id[:12]] if title == "plans list" else cells
        findings, here = read(title, mine, subjects.get(title, it.answers.subject))
        wrong += findings
        found += here
        assert here.total() >= FEWEST[title], (title, here)
        # Nobody has searched: there is nothing that could be bounded.
        assert not title.startswith("estimate") or not here["lower_bound_s"] + here["gap"], title
    assert not wrong, "\n".join(wrong)
    told = {title for title, cells in it.texts.items() for cell in cells if strategy_line(it.plan, title) in cell.text}
    assert told >= {"plan", "plans show", "explain", "report", "PLAN.md", "why not", "estimate"}, told
    missing = {each: found[each] for each, least in OFTEN.items() if found[each] < least}
    assert not missing, missing


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_numbers_of_a_plan_follow_from_each_other(name: str, ask: Callable[[str], Asked]) -> None:
    plan, it = ask(name).document, ask(name)
    problem, strategy, step_s = plan["problem"], plan["strategy"], plan["step_time_s"]
    pool, work = problem["cluster"]["pools"][0], problem["workload"]
    devices = pool["num_nodes"] * pool["devices_per_node"]
    assert near(sum(plan["breakdown_s"].values()), step_s)
    assert near(plan["tokens_per_s"], work["global_batch_size"] * work["sequence_length"] / step_s)
    assert near(plan["tokens_per_s_per_device"], plan["tokens_per_s"] / devices)
    peak_flops_per_s = devices * pool["device"]["peak_flops_per_s"][work["precision"]]
    assert near(plan["model_flops_utilization"], plan["model_flops_per_step"] / step_s / peak_flops_per_s)
    bills = [stage["peak_memory_bytes"] for stage in plan["stages"]]
    assert plan["peak_memory_bytes"] == max(bill["total"] for bill in bills)
    assert all(bill["total"] == sum(part for term, part in bill.items() if term != "total") for bill in bills)
    memory = pool["device"]["memory_bytes"]
    assert near(plan["fits_probability"], fits_probability(memory, plan["peak_memory_bytes"], plan["backend"]))
    assert near(plan["gap"], 1 - plan["lower_bound_s"] / step_s)
    assert strategy["dp"] == strategy["dp_replicate"] * strategy["dp_shard"]
    assert devices == strategy["tp"] * strategy["cp"] * strategy["pp"] * strategy["dp"]
    samples = strategy["dp"] * strategy["micro_batch_size"] * strategy["num_microbatches"]
    assert samples == work["global_batch_size"]
    assert len(plan["stages"]) == strategy["pp"]
    assert all(len(stage["chunks"]) == strategy["vpp"] for stage in plan["stages"])
    assert all(near(each["slower_by"], each["step_time_s"] / step_s - 1) for each in plan["alternatives"])
    if name in MONEY:
        assert near(plan["cost_per_step"], MONEY[name] * devices * step_s / 3600)
    assert it.data["plan"]["plan_id"] == it.plan.plan_id


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_machine_readable_copy_of_a_plan_is_the_plan(name: str, ask: Callable[[str], Asked]) -> None:
    it = ask(name)
    plan, data = it.document, it.data
    copies = {"plans show", "export", "plan.json", "GET ", "plan"}
    for title in sorted(copies):
        copy = {**plan, **data[title]} if title in {"plan", "plan.json", "GET "} else data[title]
        wrong = [each for each in unequal(plan, copy) if not each.startswith(("/search/wall_s", "/emissions"))]
        assert not wrong, (title, wrong)
    for title in ("plans list", "GET plans"):
        row = next(each for each in data[title] if each["plan_id"] == it.plan.plan_id)
        told = {"step_time_s": plan["step_time_s"], "gap": plan["gap"], "status": plan["status"]}
        assert not list(unequal({**row, **told}, row)), title
        assert row["outcome"] == it.plan.outcome, title
        assert row["num_devices"] == it.plan.problem.cluster.num_devices
    assert data["manifest.json"]["plan_id"] == it.plan.plan_id == data["GET /emissions"]["plan_id"]
    assert near(data["GET /emissions"]["step_time_s"], plan["step_time_s"])
    assert near(data["plan"]["emissions"][0]["step_time_s"], plan["step_time_s"])
    assert data["GET /emissions"]["manifest"] == data["manifest.json"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_view_of_a_plan_has_its_numbers(name: str, ask: Callable[[str], Asked]) -> None:
    it = ask(name)
    plan, data = it.document, it.data
    for title in ("explain", "sensitivity", "why not"):
        address = {"explain": "GET /explanation", "sensitivity": "GET /sensitivity", "why not": "GET why_not"}[title]
        ours, theirs = dict(data[title]), dict(data[address])
        for side in (ours, theirs):
            if side.get("other"):
                side["other"] = {key: side["other"][key] for key in ("step_time_s", "strategy", "breakdown_s")}
        assert not list(unequal(ours, theirs)), title
    explained, worst = data["explain"], max(plan["stages"], key=lambda each: each["peak_memory_bytes"]["total"])
    causes = {each["term"]: each["seconds"] for each in explained["causes"]}
    assert not list(unequal(causes, {term: value for term, value in plan["breakdown_s"].items() if value > 0}))
    assert near(sum(each["share"] for each in explained["causes"]), 1.0)
    memory = explained["memory"]
    assert memory["total_bytes"] == plan["peak_memory_bytes"]
    assert memory["limit_bytes"] == plan["memory_limit_bytes"]
    assert memory["spare_bytes"] == plan["memory_limit_bytes"] - plan["peak_memory_bytes"]
    assert {**memory["terms_bytes"], "total": memory["total_bytes"]} == worst["peak_memory_bytes"]
    assert memory["fits_probability"] == plan["fits_probability"] == data["GET /memory"]["fits_probability"]
    view = data["GET /memory"]
    assert view["limit_bytes"] == plan["memory_limit_bytes"]
    assert view["device_memory_bytes"] == plan["problem"]["cluster"]["pools"][0]["device"]["memory_bytes"]
    assert plan["stages"][view["worst_stage"]]["peak_memory_bytes"]["total"] == plan["peak_memory_bytes"]
    for seen, stage, rank in zip(view["stages"], plan["stages"], data["GET /step"]["memory"], strict=True):
        bill = stage["peak_memory_bytes"]
        assert (seen["stage"], seen["layers"]) == (stage["stage"], stage["layers"])
        assert seen["peak_memory_bytes"] == bill
        assert seen["spare_bytes"] == plan["memory_limit_bytes"] - bill["total"]
        assert rank["resident_bytes"] + max(rank["activation_bytes"]) == pytest.approx(bill["total"], abs=1)
    assert near(data["sensitivity"]["step_time_s"], plan["step_time_s"])
    untouched = [each for each in data["sensitivity"]["points"] if each["lever"] == "memory_capacity" and each["fits"]]
    assert untouched
    assert all(near(each["step_time_s"], plan["step_time_s"]) for each in untouched)
    assert data["GET /mesh"]["world_size"] == data["GET /mesh"]["num_devices"] == it.plan.problem.cluster.num_devices
    axes = {"cp": "cp", "dp_cp": "dp", "pp": "pp_send", "tp": "tp", "ep": "ep"}
    for axis in data["GET /mesh"]["axes"]:
        if axis["seconds"] is not None:
            assert near(axis["seconds"], plan["breakdown_s"].get(axes[axis["axis"]], 0.0)), axis
    same = data["diff with itself"]
    assert same["identical"]
    assert {(each["term"], each["a"], each["change"]) for each in same["breakdown_s"]} == {
        (term, value, 0.0) for term, value in plan["breakdown_s"].items()
    }
    other = data["why not"]["other"]
    assert near(data["why not"]["slower_by"], other["step_time_s"] / plan["step_time_s"] - 1)
    for change in data["why not"]["breakdown_s"]:
        assert near(change["a"], plan["breakdown_s"].get(change["term"], 0.0)), change
        assert near(change["b"], other["breakdown_s"].get(change["term"], 0.0)), change


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_a_plan_leans_on_adds_up_to_it(name: str, ask: Callable[[str], Asked]) -> None:
    it = ask(name)
    leaning = it.data["GET /leaning"]
    told = {
        "plan_id": it.plan.plan_id,
        "step_time_s": it.document["step_time_s"],
        "step_time_interval_s": it.document["step_time_interval_s"],
        "time_by_input": it.document["provenance"]["time_by_input"],
    }
    assert not list(unequal(told, {key: leaning[key] for key in told}))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_timeline_is_as_long_as_the_step(name: str, ask: Callable[[str], Asked]) -> None:
    it = ask(name)
    step, step_s = it.data["GET /step"], it.document["step_time_s"]
    assert not list(unequal(step, it.answers.step))
    assert abs((step["makespan_ns"] + step["after_ns"]) * NS - step_s) <= NS
    for title in ("trace", "GET /timeline"):
        trace = it.data[title]
        slices = [each for each in trace["traceEvents"] if each["ph"] == "X"]
        compute = [each for each in slices if each["cat"] == "compute"]
        assert abs(max(each["ts"] + each["dur"] for each in compute) * 1e-6 - step["makespan_ns"] * NS) <= 2 * NS
        assert abs(max(each["ts"] + each["dur"] for each in slices) * 1e-6 - step_s) <= 2 * NS
        assert near(trace["otherData"]["step_time_s"], step_s)
        assert abs(trace["otherData"]["makespan_s"] - step["makespan_ns"] * NS) <= NS
        assert near(trace["otherData"]["bubble_fraction"], step["bubble_fraction"])
        busy = [sum(e["dur"] for e in compute if e["pid"] == rank + 1) * 1e-6 for rank in range(step["num_ranks"])]
        assert all(abs(a - b * NS) <= NS * len(compute) for a, b in zip(busy, step["busy_ns"], strict=True))
    assert [sum(each) for each in zip(step["busy_ns"], step["bubble_ns"], strict=True)] == pytest.approx(
        [step["makespan_ns"]] * step["num_ranks"], abs=2
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_estimate_of_the_plans_own_strategy_is_the_plan(
    name: str, ask: Callable[[str], Asked], client: TestClient
) -> None:
    it = ask(name)
    problem = it.document["problem"]
    body = {
        "model": problem["model"], "cluster": problem["cluster"], "workload": problem["workload"], "profile": "none",
        "constraints": {"backends": [it.document["backend"]], "fits": problem["constraints"]["fits"]},
        "strategy": estimated_strategy(it.plan),
    }  # fmt: skip
    answer = client.post("/v1/estimates", json=body)
    assert answer.status_code == 200, answer.text
    # A search knows a bound, what else there is, and what it costs.
    own = {"plan_id", "problem_id", "problem", "status", "search", "alternatives", "backends", "fastest", "origins",
           "unrestricted", "lower_bound_s", "gap", "cost_per_step", "emissions"}  # fmt: skip
    plan = {key: value for key, value in it.document.items() if key not in own}
    for title, made in (("estimate", it.data["estimate"]), ("POST /v1/estimates", answer.json()["plan"])):
        assert not list(unequal(plan, {key: value for key, value in made.items() if key not in own})), title
        assert (made["lower_bound_s"], made["gap"]) == (None, None), title


def test_a_strategy_that_does_not_fit_is_told_with_one_lack(folder: Path) -> None:
    path, cells = folder / "too-large.json", dict[str, list[Cell]]()
    words = (*QUESTIONS["sharded"], "-s", "micro_batch_size=8,zero_stage=2", "--plan-out", str(path))
    done = run_here("estimate", *words, "--quiet")
    assert done.exit_code == 5
    answers = estimated(path, cells)
    lack = answers.plan["peak_memory_bytes"] - answers.plan["memory_limit_bytes"]
    assert lack > 0
    cells |= {"estimate": text_cells(done.stdout), "error": text_cells(done.stderr)}
    for title, shown in cells.items():
        wrong, found = read(title, shown, answers.subject)
        assert not wrong, "\n".join(wrong)
        assert not found["lower_bound_s"] + found["gap"], title
        assert found["missing bytes"] >= 1, title


def test_the_fastest_plan_is_told_beside_the_recommended_one_as_it_is(
    ask: Callable[[str], Asked], folder: Path, client: TestClient
) -> None:
    it = ask("dense")
    plan, other = it.document, it.document["fastest"]
    assert not other["is_recommended"]
    path, database = folder / "fastest.json", ("--database", str(folder / "plans.db"))
    question = (*QUESTIONS["dense"], "--prefer", "fastest")
    made = ran_json("plan", *question, *database, "--quiet", "--plan-out", str(path))
    told = ("step_time_s", "peak_memory_bytes", "fits_probability", "strategy", "status")
    assert not list(unequal({key: other[key] for key in told}, {key: made[key] for key in told}))
    assert near(other["slower_by"], plan["step_time_s"] / made["step_time_s"] - 1)
    assert not list(unequal(plan["backends"], made["backends"]))
    assert near(plan["lower_bound_s"], made["lower_bound_s"])
    first = plan["backends"][0]
    assert (first["step_time_s"], first["strategy"]) == (made["step_time_s"], made["strategy"])
    solved = [each for each in plan["backends"] if each["step_time_s"] is not None]
    assert len(solved) > 4
    assert all(near(each["slower_by"], each["step_time_s"] / made["step_time_s"] - 1) for each in solved)
    assert all(near(each["gap"], 1 - each["lower_bound_s"] / each["step_time_s"]) for each in solved)
    a, b = it.plan.plan_id, made["plan_id"]
    difference = ran_json("diff", a, b, *database)
    answer = client.get(f"/v1/plans/{a}/diff/{b}")
    assert not list(unequal(difference, answer.json()))
    assert (difference["step_time_s"]["a"], difference["step_time_s"]["b"]) == (
        plan["step_time_s"],
        made["step_time_s"],
    )
    for change in difference["breakdown_s"]:
        assert near(change["a"], plan["breakdown_s"].get(change["term"], 0.0)), change
        assert near(change["b"], made["breakdown_s"].get(change["term"], 0.0)), change
    cells = text_cells(ran("diff", a, b, *database))
    wrong, found = read("diff", cells, lambda cell: ("difference", difference_quantities(cell, difference), None))
    assert not wrong, "\n".join(wrong)
    assert found.total() >= 30, found


def test_a_row_of_the_throughput_curve_is_its_plan(folder: Path) -> None:
    database = ("--database", str(folder / "plans.db"))
    question = ("throughput", *QUESTIONS["sharded"], *database, "--quiet", "--price", "3")
    curve = ran_json(*question)
    row = curve["points"][0]
    assert curve["prefer"] == "fastest"
    plan = ran_json("plans", "show", row["plan_id"], *database)
    fastest = ran_json("plan", *QUESTIONS["sharded"], "--prefer", "fastest", "--quiet", "--no-store")
    assert fastest["problem_id"] == plan["problem_id"], "it answers the question of the fastest plan"
    assert row["lower_bound_s"] <= fastest["step_time_s"] <= row["step_time_s"] * (1 + SAME)
    same = {key: value for key, value in row.items() if key in plan}
    assert len(same) >= 12
    assert not list(unequal(same, {key: plan[key] for key in same}))
    assert near(row["cost_per_million_tokens"], 3 * row["num_devices"] / 3600 / plan["tokens_per_s"] * 1e6)
    keys = {
        "step_time_s": ("s", "^step$"), "tokens_per_s": ("", "tokens/s"), "lower_bound_s": ("s", "^bound$"),
        "gap": ("%", "^gap$"), "model_flops_utilization": ("%", "mfu"), "cost_per_million_tokens": ("", "cost"),
    }  # fmt: skip
    labels = [Labelled(key, unit, said, row[key]) for key, (unit, said) in keys.items()]
    cells = text_cells(ran(*question))
    assert any("fastest plan found for each" in cell.text for cell in cells)
    wrong, found = read("throughput", cells, lambda cell: ("row", labels, None))
    assert not wrong, "\n".join(wrong)
    assert found.total() >= 5, found


def test_a_plan_over_unequal_pools_has_one_value_for_each_quantity(folder: Path) -> None:
    path = folder / "pools.json"
    cells = text_cells(ran("plan", *POOLS, "--quiet", "--plan-out", str(path)))
    plan = json.loads(path.read_text())
    wrong, found = read("pools", cells, lambda cell: ("plan", pools_quantities(cell, plan), None))
    assert not wrong, "\n".join(wrong)
    assert found.total() >= 30, found
    step_s, devices = plan["step_time_s"], sum(each["devices"] for each in plan["pools"])
    assert near(sum(plan["breakdown_s"].values()), step_s)
    assert near(plan["tokens_per_s"], 32 * 2048 / step_s)
    assert near(plan["tokens_per_s_per_device"], plan["tokens_per_s"] / devices)
    assert near(plan["gap"], 1 - plan["lower_bound_s"] / step_s)
    stages = plan["stages"]
    slowest = max(each["microbatch_s"] for each in stages)
    assert near(plan["breakdown_s"]["slowest_stage"], plan["num_microbatches"] * slowest)
    for use in plan["pools"]:
        mine = [each for each in stages if each["pool"] == use["pool"]]
        assert (use["stages"], use["layers"]) == (len(mine), sum(each["layers"] for each in mine))
        assert use["used"] == sum(each["devices"] for each in mine)
