from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="sharding plans need the extra meshwright[torch]")

from planner.backends.folders.directory import check_directory
from planner.backends.launch.launchers import LAUNCHERS
from planner.backends.native.trainer.operator_sharding.traced_module import module_source
from planner.backends.operator_sharding.emit import emit_sharding, read_back, write_sharding
from planner.backends.operator_sharding.parallelize import parallelize_script
from planner.errors import Conflict, DocumentInvalid
from planner.shard.sharding_plan import ParameterPlacement, Placements, ShardingPlan, TensorEdge
from planner.shard.torch_graph.read_graph import operator_graph, traced_step
from profiles.catalogue import load_cluster
from tests.random_sharding import random_plan
from tests.sharding_modules import TwoLayers, traced_module

CLUSTER = load_cluster("dgx-h100", 4)


@pytest.fixture(scope="module")
def plan() -> ShardingPlan:
    traced = traced_module(TwoLayers)
    return random_plan(operator_graph(traced_step(module_source(traced)), (2,)), traced, (2, 2), seed=0)


def _said(plan: ShardingPlan, weights: dict[str, Placements], states: dict[str, Placements]) -> ShardingPlan:
    """The plan with samples cut on the first axis, and weights as told; only what a module's form is read from."""

    def parameter(row: ParameterPlacement) -> ParameterPlacement:
        kept = weights.get(row.parameter, ("replicate", "replicate"))
        return row.model_copy(
            update={"placements": kept, "state_placements": states.get(row.parameter, kept)},
        )

    samples = {"inputs_1", "inputs_2"}
    for row in plan.operators:
        if row.target == "aten.view.default" and row.inputs[0].producer in samples:
            samples.add(row.name)

    def edge(read: TensorEdge) -> TensorEdge:
        return read.model_copy(update={"needed": ("shard:0" if read.producer in samples else "replicate", "replicate")})

    operators = tuple(
        row.model_copy(update={"inputs": tuple(edge(each) for each in row.inputs)}) for row in plan.operators
    )
    return plan.model_copy(
        update={"parameters": tuple(parameter(each) for each in plan.parameters), "operators": operators}
    )


def test_the_folder_reads_back_as_the_plan(plan: ShardingPlan, tmp_path: Path) -> None:
    emission = emit_sharding(plan, CLUSTER)
    folder = write_sharding(emission, tmp_path / "run")
    assert read_back(emission.files) == plan
    assert {path.name for path in folder.iterdir()} == {
        *("sharding.json", "train.py", "parallelize.py", "PLAN.md", "launch.sh", "manifest.json")
    }
    assert check_directory(folder) == []
    assert json.loads((folder / "manifest.json").read_text("utf-8"))["plan_id"] == plan.plan_id


def test_an_edited_folder_is_found_and_never_overwritten(plan: ShardingPlan, tmp_path: Path) -> None:
    folder = write_sharding(emit_sharding(plan, CLUSTER), tmp_path / "run")
    text = (folder / "sharding.json").read_text("utf-8")
    (folder / "sharding.json").write_text(text.replace('"optimizer": "adamw"', '"optimizer": "sgd"'), "utf-8")
    assert [finding.rule for finding in check_directory(folder)] == ["emission.edited", "emission.plan"]
    with pytest.raises(Conflict, match=r"sharding\.json \(edited\)"):
        write_sharding(emit_sharding(plan, CLUSTER), folder)


def test_a_launcher_of_other_ranks_is_found(plan: ShardingPlan) -> None:
    files = dict(emit_sharding(plan, CLUSTER).files)
    files["launch.sh"] = files["launch.sh"].replace("DEVICES_PER_NODE=4", "DEVICES_PER_NODE=8")
    with pytest.raises(DocumentInvalid, match="starts 8 ranks, the plan has 4"):
        read_back(files)


@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name != "ascendjob"])
def test_every_launcher_starts_the_script(plan: ShardingPlan, launcher: str) -> None:
    emission = emit_sharding(plan, CLUSTER, launcher)  # type: ignore[arg-type]
    assert any("train.py" in text for name, text in emission.files.items() if name in emission.launch.files)


def test_megatron_beside_fsdp_is_said_in_parallel_styles(plan: ShardingPlan) -> None:
    weights: dict[str, Placements] = {
        "up.weight": ("shard:0", "shard:0"),
        "up.bias": ("shard:0", "shard:0"),
        "down.weight": ("shard:0", "shard:1"),
        "down.bias": ("shard:0", "replicate"),
    }
    text = parallelize_script(_said(plan, weights, {}))
    compile(text, "parallelize.py", "exec")
    assert '"up": ColwiseParallel()' in text
    assert '"down": RowwiseParallel()' in text
    assert 'fully_shard(module, mesh=mesh["axis0"], reshard_after_forward=True)' in text


def test_sharded_states_alone_keep_gathered_weights(plan: ShardingPlan) -> None:
    states: dict[str, Placements] = {
        row.parameter: ("shard:0", "replicate") for row in plan.parameters if row.kind == "parameter"
    }
    assert "reshard_after_forward=False" in parallelize_script(_said(plan, {}, states))


def test_replicas_are_said_as_replicas(plan: ShardingPlan) -> None:
    assert 'replicate(module, mesh=mesh["axis0"])' in parallelize_script(_said(plan, {}, {}))


def test_what_has_no_name_runs_as_a_graph_and_says_why(plan: ShardingPlan) -> None:
    text = parallelize_script(_said(plan, {"up.bias": ("replicate", "shard:0")}, {}))
    compile(text, "parallelize.py", "exec")
    assert "weight and bias of up are cut differently" in text or "no linear layer's weight" in text
    assert "def sharded_step" in text
