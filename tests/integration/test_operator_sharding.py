"""Operator-level plans train what one process trains and send what they say: real processes, gloo, CPU.

The plans are legal ones chosen by dice, so that placements run which no optimum would choose.  All ranks are forked
from one process, because importing torch costs more than training.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="sharding plans need the extra meshwright[torch]")

from planner.backends.native.trainer.operator_sharding.traced_module import module_source
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.torch_graph.read_graph import operator_graph, traced_step
from tests import sharding_modules
from tests.random_sharding import random_plan
from tests.rank_launch import cpu_environment, launched
from tests.sampling import drawn
from tests.sharded_traffic import expected_calls
from tests.sharding_modules import traced_module
from tests.warm_python.interpreters import NATIVE, WarmPythons

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
"""Losses in fp32; measured: at most 2.4e-7."""
MODULES = {
    "two-layers": sharding_modules.TwoLayers,
    "llama": sharding_modules.LlamaLayer,
    "conv": sharding_modules.ConvolutionalNet,
    "encoder-decoder": sharding_modules.EncoderDecoder,
    "mixture": sharding_modules.DenseMixture,
}
CASES = {f"{name}-2x2": (kind, (2, 2), "adamw") for name, kind in MODULES.items() if name != "mixture"} | {
    "two-layers-2x2x2": (sharding_modules.TwoLayers, (2, 2, 2), "adamw"),
    "mixture-2x4": (sharding_modules.DenseMixture, (2, 4), "sgd"),
}
TRAINED = drawn(list(CASES), 4, kept=("mixture-2x4",))


@pytest.fixture(scope="module")
def plans() -> dict[str, ShardingPlan]:
    """One plan a case."""
    graphs: dict[type, Any] = {}
    found = {}
    for seed, (name, (kind, mesh, optimizer)) in enumerate(CASES.items()):
        traced = traced_module(kind)
        if kind not in graphs:
            graphs[kind] = operator_graph(traced_step(module_source(traced)), (2, 4))
        found[name] = random_plan(graphs[kind], traced, mesh, seed, optimizer)
    return found


@pytest.fixture(scope="module")
def results(
    plans: dict[str, ShardingPlan], tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons
) -> dict[str, Any]:
    """Losses and edges of every case."""
    folder = tmp_path_factory.mktemp("plans")
    for name in TRAINED:
        (folder / f"{name}.json").write_text(plans[name].model_dump_json(), encoding="utf-8")
    worker = str(ROOT / "tests" / "integration" / "operator_sharding_worker.py")
    environment = cpu_environment()
    python = warm_pythons.python(NATIVE, environment).executable
    done = launched([python, worker, str(folder)], environment, timeout_s=600)
    if done.returncode:
        pytest.fail(f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}")
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.result")}


@pytest.mark.parametrize("name", TRAINED)
def test_losses_equal_one_process(name: str, results: dict[str, Any]) -> None:
    losses, reference = results[name]["losses"], results[name]["reference"]
    assert len(losses) == len(reference) == 3
    assert losses == pytest.approx(reference, rel=TOLERANCE)
    assert len(set(reference)) == 3


@pytest.mark.parametrize("name", TRAINED)
def test_every_edge_sends_what_the_plan_pays_for(
    name: str, plans: dict[str, ShardingPlan], results: dict[str, Any]
) -> None:
    plan, records = plans[name], results[name]["traffic"]["operators"]
    planned = [(list(edge.held), list(edge.needed)) for row in plan.operators for edge in row.inputs]
    assert [(record["held"], record["needed"]) for record in records] == planned
    sent: Counter[str] = Counter()
    for record in records:
        expected = expected_calls(record, plan)
        if expected is not None:
            assert record["calls"] == expected, record
            sent.update(call[0] for call in expected)
    assert len(sent) >= 2, sent


@pytest.mark.parametrize("name", TRAINED)
def test_gradients_and_updates_send_what_the_plan_pays_for(
    name: str, plans: dict[str, ShardingPlan], results: dict[str, Any]
) -> None:
    plan, traffic = plans[name], results[name]["traffic"]
    states = [list(row.state_placements) for row in plan.parameters if row.gradient_producer is not None]
    assert len(traffic["step"]) >= 2 * len(states)
    updates = traffic["step"][-len(states) :]
    assert Counter(map(str, states)) == Counter(str(record["held"]) for record in updates)
    for record in traffic["step"]:
        expected = expected_calls(record, plan)
        assert expected is None or record["calls"] == expected, record
    assert any(record["calls"] for record in traffic["step"])
    assert traffic["unexplained"] == 0


def test_the_plans_cut_most_operators(plans: dict[str, ShardingPlan]) -> None:
    for plan in plans.values():
        cut = sum(
            any(word != "replicate" for words in row.outputs if words for word in words) for row in plan.operators
        )
        assert cut > 0.8 * len(plan.operators)
        assert math.prod(axis.size for axis in plan.mesh) in (4, 8)
