"""How often torch's own code gathers the chunks of a rank, and when the chunk of a gather is used."""

from __future__ import annotations

import pytest

from planner.predict.cost.regathers import gathers_a_step
from planner.predict.schedule.orders import build_order
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Relief, Strategy

pytest.importorskip("torch")


def lowered(schedule: ScheduleName, pp: int, vpp: int, microbatches: int, group: int) -> list[list[tuple[str, int]]]:
    """Kinds and chunks of every rank's actions with torch's gathers and drops."""
    from torch.distributed.pipelining import schedules as torch_schedules

    kinds = {kind.value: kind for kind in torch_schedules._ComputationType}
    ranks = []
    for order in build_order(schedule, pp, vpp, microbatches, group):
        actions: list[torch_schedules._Action | None] = [
            torch_schedules._Action(each.chunk, kinds[each.kind.value], each.microbatch) for each in order
        ]
        with_gathers = torch_schedules._add_unshard_reshard(actions)
        ranks.append([(each.computation_type.value, each.stage_index) for each in with_gathers])
    return ranks


def gathers(rank: list[tuple[str, int]]) -> int:
    return sum(kind == "UNSHARD" for kind, _ in rank)


def counted(strategy: Strategy) -> int:
    """Gathers of a rank and step, by the planner."""
    return round(float(gathers_a_step(StrategyRows.of([strategy], (Relief(),)))[0]) * strategy.vpp)


@pytest.mark.parametrize("pp", [2, 4, 8])
@pytest.mark.parametrize("vpp", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("rounds", [2, 4, 8])
def test_gathers_of_an_interleaved_step(pp: int, vpp: int, rounds: int) -> None:
    most = max(map(gathers, lowered("interleaved", pp, vpp, rounds * pp, pp)))
    strategy = Strategy(pp=pp, vpp=vpp, num_microbatches=rounds * pp, schedule="interleaved", microbatch_group_size=pp)
    assert most == counted(strategy)


@pytest.mark.parametrize("vpp", [2, 3, 4, 6, 10])
def test_gathers_of_a_breadth_first_step(vpp: int) -> None:
    strategy = Strategy(pp=4, vpp=vpp, num_microbatches=16, schedule="looped_bfs")
    assert {gathers(rank) for rank in lowered("looped_bfs", 4, vpp, 16, 0)} == {counted(strategy)}


def test_on_the_last_rank_every_other_gather_has_one_pair_of_passes_to_hide_under() -> None:
    """Passes between a gather and the first use of its chunk, in the steady part of a step."""
    rank = lowered("interleaved", 4, 8, 64, 4)[-1]
    waits = []
    for index, (kind, chunk) in enumerate(rank):
        if kind == "UNSHARD":
            rest = [each for each in rank[index:] if each[0] in ("F", "B")]
            waits.append(next(passes for passes, (_, used) in enumerate(rest) if used == chunk))
    steady = waits[len(waits) // 4 : -len(waits) // 4]
    assert set(steady) == {2, 8}
    assert 0.3 < steady.count(2) / len(steady) < 0.5
