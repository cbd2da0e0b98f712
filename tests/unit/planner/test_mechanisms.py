"""The strategies that count as simple and usual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.search.mechanisms import MECHANISMS, Plain, is_common, mechanisms_of, number_of_mechanisms
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.reliefs import RELIEFS

PLAIN = Strategy(tp=4, sp=True, pp=4, dp_shard=4, num_microbatches=16)
EVEN = (8, 8, 8, 8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ()),
        ({"schedule": "interleaved", "vpp": 2, "microbatch_group_size": 4}, ()),
        ({"zero_stage": 3}, ()),
        ({"optimizer_offload": True}, ("optimizer offload",)),
        ({"activation_offload": True}, ("activation offload",)),
        ({"recompute": "full"}, ("recompute",)),
        ({"recompute": "selective", "recompute_modules": ("norm", "mlp")}, ("recompute",)),
        ({"cp": 2, "cp_kind": "ring"}, ("context parallelism",)),
        ({"etp": 2}, ("expert tensor parallelism",)),
        ({"dp_replicate": 2, "dp_shard": 2}, ("hybrid sharding",)),
        ({"dp_replicate": 4, "dp_shard": 1, "zero_stage": 0}, ()),
        ({"schedule": "zb_h1"}, ("an unusual schedule",)),
        ({"axis_order": "tp-cp-ep-pp-dp"}, ("an unusual order of axes",)),
        ({"cp": 2, "cp_kind": "ring", "optimizer_offload": True}, ("optimizer offload", "context parallelism")),
    ],
)
def test_what_has_to_be_switched_on_is_told(change: dict[str, Any], words: tuple[str, ...]) -> None:
    strategy = replace(PLAIN, **change)
    assert mechanisms_of(strategy, EVEN) == words
    assert mechanisms_of(strategy, (7, 8, 8, 9)) == (*words, "uneven layers")


def test_every_mechanism_has_its_reason() -> None:
    assert len({each.words for each in MECHANISMS}) == len(MECHANISMS)
    assert all(len(each.why) > 20 for each in MECHANISMS)


@pytest.mark.parametrize(
    ("change", "common"),
    [
        ({}, True),
        ({"tp": 16}, False),
        ({"tp": 3}, False),
        ({"cp": 3, "cp_kind": "ring"}, False),
        ({"ep": 6}, False),
        ({"micro_batch_size": 3}, False),
        ({"pp": 5}, False),
        ({"pp": 16}, True),
    ],
)
def test_published_runs_have_a_common_shape(change: dict[str, Any], common: bool) -> None:
    assert is_common(replace(PLAIN, **change), num_layers=32, devices_per_node=8) is common


def test_stages_that_divide_the_layers_are_common() -> None:
    """MT-NLG 530B has 105 layers on 35 stages, Llama-3 405B 126 on 16."""
    assert is_common(replace(PLAIN, pp=35), num_layers=105, devices_per_node=8)
    assert is_common(replace(PLAIN, pp=16), num_layers=126, devices_per_node=8)
    assert not is_common(replace(PLAIN, pp=12), num_layers=32, devices_per_node=8)


def test_a_part_of_the_space_has_what_it_allows() -> None:
    strategies = [
        PLAIN,
        replace(PLAIN, optimizer_offload=True),
        replace(PLAIN, optimizer_offload=True, cp=2, cp_kind="ring"),
        replace(PLAIN, pp=3),
        replace(PLAIN, micro_batch_size=3),
    ]
    rows = StrategyRows.of(strategies, (Relief(),))
    assert number_of_mechanisms(rows, (Relief(),), 32).tolist() == [0, 1, 2, 1, 0]
    kept = [Plain(most, common, RELIEFS, 32, 8).keeps(rows).tolist() for most, common in ((0, False), (1, True))]
    assert kept == [[True, False, False, False, True], [True, True, False, False, False]]


def test_layers_are_dealt_equally_unless_that_costs_no_more() -> None:
    rows = StrategyRows.of([PLAIN, replace(PLAIN, pp=3)], (Relief(),))
    even, uneven = (rows.take(np.array([index])) for index in (0, 1))
    none, one = (Plain(most, False, RELIEFS, 32, 8) for most in (0, 1))
    assert [none.may_be_uneven(even), one.may_be_uneven(even), one.may_be_uneven(uneven)] == [False, True, True]
