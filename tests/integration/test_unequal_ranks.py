"""A plan over unequal devices is trained as emitted, on CPU ranks of unequal speed: the times of its stages come in the
order that was predicted, and in another one where all ranks are equally fast."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, node_kinds
from planner.backends.ranks.launch_ranks import end_tree, rank_environment
from planner.search.pools.launchable import launchable_plan
from tests.unequal_devices import devices, plan_of, question

SLOWER = 4.0
"""The slow device takes so many times as long."""
TIMEOUT_S = 400.0


def trained(folder: Path, slow_ranks: str) -> list[dict[str, Any]]:
    """The steps of rank 0; every node of the plan runs ``launch.sh`` on this machine."""
    words = "--device cpu --precision fp32 --steps 3 --data tests.slow_ranks:tokens"
    variables = rank_environment({"TRAIN_ARGS": words, "SLOW_RANKS": slow_ranks})
    text = (folder / LAUNCH_SCRIPT).read_text(encoding="utf-8")
    num_nodes = sum(nodes for nodes, _ in node_kinds(text))
    processes = []
    try:
        for rank in range(num_nodes):
            with (folder / f"node{rank}.log").open("wb") as log, (folder / f"node{rank}.out").open("wb") as out:
                here = {**variables, "NODE_RANK": str(rank)}
                words_of_node = ["bash", LAUNCH_SCRIPT]
                processes.append(
                    subprocess.Popen(
                        words_of_node, cwd=folder, env=here, stdout=out, stderr=log, start_new_session=True
                    )
                )
        codes = [process.wait(timeout=TIMEOUT_S) for process in processes]
    finally:
        for process in processes:
            end_tree(process)
    logs = "\n".join((folder / f"node{rank}.log").read_text(errors="replace")[-2000:] for rank in range(num_nodes))
    assert codes == [0] * num_nodes, logs
    lines = (folder / "node0.out").read_text().splitlines() + (folder / "node1.out").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def by_time(seconds: list[float]) -> list[int]:
    return sorted(range(len(seconds)), key=lambda stage: seconds[stage])


@pytest.mark.slow
def test_stages_on_unequal_ranks_take_their_times_in_the_predicted_order(tmp_path: Path) -> None:
    clusters = devices("slow-core", 1, SLOWER), devices("fast-cores", 2, 1.0)
    plan = plan_of(question(*clusters, layers=6, pp=3, micro_batch_size=1))
    predicted = [stage.microbatch_s for stage in plan.stages]
    runnable = launchable_plan(plan)
    folder = write_emission(emit_plan(runnable, "torchrun"), tmp_path / "files")
    assert check_directory(folder) == []
    text = (folder / LAUNCH_SCRIPT).read_text(encoding="utf-8")
    assert sorted(node_kinds(text)) == [(1, 1), (1, 2)], "one node of one slow device, one of two fast ones"
    slow = [stage.stage for stage in plan.stages if stage.pool == "slow-core"]
    assert slow, "the slow device has a stage"
    steps = trained(folder, ",".join(f"{rank}={SLOWER}" for rank in slow))
    assert len(steps) == 3
    measured = steps[-1]["stage_microbatch_s"]
    print("predicted", predicted, "measured", measured)
    assert by_time(measured) == by_time(predicted)
    # The slowest stage is the slow device's, with the fewest layers; were it as fast as the others, it would wait most.
    assert by_time(measured)[-1] == slow[0]
    assert min(plan.stages, key=lambda stage: stage.layers).stage == slow[0]
    same = trained(folder, "")
    assert by_time(same[-1]["stage_microbatch_s"])[0] == slow[0]
    assert [step["loss"] for step in steps] == pytest.approx([step["loss"] for step in same])
