from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answers.explain.neighbours import adapt, moves
from planner.strategy.schedules import V_SCHEDULES
from planner.strategy.strategy import Strategy

BASE = Strategy(
    tp=4,
    sp=True,
    pp=4,
    vpp=2,
    schedule="interleaved",
    microbatch_group_size=4,
    dp_shard=4,
    num_microbatches=32,
    zero_stage=1,
)
BATCH = BASE.global_batch_size


def test_moves_keep_devices_and_global_batch() -> None:
    found = dict(moves(BASE, BATCH, "where_needed"))
    assert len(found) >= 15
    assert {strategy.world_size for strategy in found.values()} == {BASE.world_size}
    assert {strategy.global_batch_size for strategy in found.values()} == {BATCH}
    assert BASE not in found.values()


def test_a_move_changes_what_it_says() -> None:
    found = dict(moves(BASE, BATCH, "where_needed"))
    assert found["tp 4 -> 8"].tp == 8
    assert found["tp 4 -> 8"].dp == 2
    assert found["pp 4 -> 2"].microbatch_group_size == 2
    assert found["zero_stage 1 -> 2"].zero_stage == 2
    assert found["optimizer_offload false -> true"].optimizer_offload
    assert found["micro_batch_size 1 -> 2"].num_microbatches == 16


def test_what_no_longer_applies_is_dropped() -> None:
    alone = adapt(BASE, {"tp": 1, "pp": 1}, 64, BATCH)
    assert alone is not None
    assert (alone.sp, alone.vpp, alone.schedule, alone.microbatch_group_size) == (False, 1, "1f1b", 0)
    ring = adapt(BASE, {"cp": 2}, 64, BATCH)
    assert ring is not None
    assert ring.cp_kind == "ring"


def test_schedules_bring_their_chunks() -> None:
    for schedule in V_SCHEDULES:
        made = adapt(BASE, {"schedule": schedule}, 64, BATCH)
        assert made is not None
        assert (made.vpp, made.microbatch_group_size) == (2, 0)
    plain = adapt(BASE, {"vpp": 1}, 64, BATCH)
    assert plain is not None
    assert plain.schedule == "1f1b"


def test_what_was_asked_for_is_never_overruled() -> None:
    made = adapt(BASE, {"tp": 8, "sp": False, "dp_replicate": 2}, 64, BATCH)
    assert made is not None
    assert (made.sp, made.dp_replicate, made.dp_shard) == (False, 2, 1)


@pytest.mark.parametrize("changes", [{"tp": 3}, {"tp": 128}, {"dp": 3}, {"micro_batch_size": 5}, {"dp_replicate": 3}])
def test_what_does_not_divide_is_no_neighbour(changes: dict[str, int]) -> None:
    assert adapt(BASE, changes, 64, BATCH) is None


@given(
    tp=st.sampled_from([1, 2, 3, 4, 8]),
    pp=st.sampled_from([1, 2, 4, 5, 8]),
    cp=st.sampled_from([1, 2]),
    micro=st.sampled_from([1, 2, 3]),
    replicas=st.sampled_from([1, 2]),
)
def test_every_adapted_strategy_uses_all_devices_and_the_whole_batch(
    tp: int, pp: int, cp: int, micro: int, replicas: int
) -> None:
    made = adapt(BASE, {"tp": tp, "pp": pp, "cp": cp, "micro_batch_size": micro, "dp_replicate": replicas}, 64, BATCH)
    if made is not None:
        assert (made.world_size, made.global_batch_size) == (64, BATCH)
        assert (made.tp, made.pp, made.cp, made.micro_batch_size, made.dp_replicate) == (tp, pp, cp, micro, replicas)
        assert made.sp == (tp > 1)
