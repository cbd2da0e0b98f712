"""What the exchange of routed tokens holds under each dispatcher: by hand, with the numbers of the cited code."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.memory.exchange_buffers import (
    deepep_ring_bytes,
    passing_exchange_bytes,
    standing_exchange_bytes,
)
from planner.question.routing import EVEN, ExpertLoad
from planner.strategy.strategy import DISPATCHERS, Dispatcher

MIXTRAL = builtin_model("mixtral-8x7b")
TOKENS, WIDTH, EXPERTS = 4096, 4096, 8
OWN = TOKENS * WIDTH * 2.0
"""Bytes of the hidden states of one rank's tokens."""


COMBINE = next(each for each in layer_operators(MIXTRAL, 0) if each.name == "combine")


def _keys(
    dispatcher: Dispatcher, *, ep: int, etp: int = 1, tp: int = 1, overlap: float = 0.0, routing: ExpertLoad = EVEN
) -> LayerKeys:
    columns = {name: np.array([0.0 if name.startswith("overlap") else 1.0]) for name in KEY_COLUMNS}
    columns |= {"ep": np.array([float(ep)]), "etp": np.array([float(etp)]), "tp": np.array([float(tp)])}
    columns |= {"overlap_ep": np.array([overlap]), "dispatcher": np.array([float(DISPATCHERS.index(dispatcher))])}
    return LayerKeys(**columns, sequence_length=TOKENS, routing=routing)


def _standing(keys: LayerKeys) -> float:
    return float(standing_exchange_bytes(MIXTRAL, keys)[0])


def _passing(keys: LayerKeys) -> float:
    return float(passing_exchange_bytes(COMBINE, keys)[0])


@pytest.mark.parametrize("ep", [2, 4, 8])
def test_an_all_gather_holds_the_tokens_of_every_rank(ep: int) -> None:
    """Gathered in 16 bit and staying; restored in 16 bit, a copy in 32, and the own sum in 32 beside the rows."""
    keys = _keys("allgather", ep=ep)
    assert _standing(keys) == pytest.approx(ep * OWN)
    assert _passing(keys) == pytest.approx(2 * OWN + 3 * ep * OWN + 2 * OWN)


def test_ranks_of_an_expert_gather_rows_also_where_no_experts_are_dealt_out() -> None:
    """Two experts a token, rows of four ranks gathered, cast to fp32 and summed: 3 etp + 2 times a rank's own rows."""
    rows = 2 * OWN / 4  # sp: a quarter of the tokens a rank
    assert _passing(_keys("alltoall", ep=1, etp=4, tp=4)) == pytest.approx(rows * (3 * 4 + 2))
    assert _passing(_keys("alltoall", ep=1)) == pytest.approx(3 * 2 * OWN + OWN)


def test_an_all_gather_goes_over_the_ranks_of_an_expert_too_and_minds_no_load() -> None:
    keys = _keys("allgather", ep=4, etp=2, tp=2)  # sp: half of the tokens a rank
    assert _standing(keys) == pytest.approx(4 * 2 * OWN / 2)
    assert _passing(keys) == pytest.approx((2 + 3 * 8 + 2) * OWN / 2)
    uneven = _keys("allgather", ep=8, routing=ExpertLoad(kind="zipf", exponent=1.0))
    assert _passing(uneven) == _passing(_keys("allgather", ep=8))


def test_an_all_gather_of_one_layer_takes_gibibytes_where_an_all_to_all_does_not() -> None:
    gathered, sent = _keys("allgather", ep=8), _keys("alltoall", ep=8)
    assert _standing(gathered) + _passing(gathered) > 1.1 * 2**30
    assert _standing(sent) + _passing(sent) < 0.25 * 2**30


def test_an_all_to_all_makes_rows_three_times_and_their_fp32_sum_over_the_ranks_of_an_expert() -> None:
    assert _passing(_keys("alltoall", ep=8)) == pytest.approx((3 * 2 + 1) * OWN)
    assert _passing(_keys("alltoall", ep=4, etp=2, tp=2)) == pytest.approx(2 * OWN / 2 * (3 * 2 + 2))
    assert _standing(_keys("alltoall", ep=8)) == 0.0


@pytest.mark.parametrize(
    ("ranks", "nvlink_tokens", "peers", "rdma_tokens", "nodes"),
    [(4, 256, 4, 0, 0), (8, 256, 8, 0, 0), (16, 288, 8, 140, 2), (64, 288, 8, 140, 8), (128, 560, 8, 132, 16)],
)
def test_rings_of_deepep_as_its_configurations_ask(
    ranks: int, nvlink_tokens: int, peers: int, rdma_tokens: int, nodes: int
) -> None:
    """csrc/config.hpp of DeepEP with 20 multiprocessors (10 channels), without its counters of a few KB."""
    nvlink = 10 * peers * nvlink_tokens * (7168 * 2 + 8 + 128 * 8 + 128 * 4 + 128 * 4)
    rdma = 2 * 10 * nodes * rdma_tokens * (7168 * 2 + 8 + 128 * 8 + 128 * 4 + 128 * 4 + 16)
    assert deepep_ring_bytes(7168 * 2.0, np.array([float(ranks)])) == pytest.approx([nvlink + rdma])


def test_deepep_brings_a_token_once_to_a_device() -> None:
    """Two experts in 8 devices are in 2 - 1/8 of them in the mean."""
    keys = _keys("deepep", ep=8)
    assert _passing(keys) == pytest.approx((2 + 1.875 + 1) * OWN)
    assert _standing(keys) == pytest.approx(float(deepep_ring_bytes(WIDTH * 2.0, np.array([8.0]))[0]))


def test_hybridep_holds_the_tokens_of_every_rank_as_if_one_expert_drew_them() -> None:
    keys = _keys("hybridep", ep=8)
    assert _standing(keys) == pytest.approx(TOKENS * 8 * (2 * WIDTH + WIDTH / 32 + 4 * EXPERTS))
    assert _passing(keys) == pytest.approx(3 * OWN)


@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_nothing_stands_where_nothing_is_sent_and_two_exchanges_pass_where_they_overlap(dispatcher: Dispatcher) -> None:
    assert _standing(_keys(dispatcher, ep=1)) == 0.0
    assert _passing(_keys(dispatcher, ep=8, overlap=1.0)) == 2 * _passing(_keys(dispatcher, ep=8))
