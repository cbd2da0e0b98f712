"""Every argument that Megatron-DeepSpeed adds is one of: used, without influence, not modelled, another model."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from planner.model.argument_lists import known_arguments

ADDED = known_arguments("megatron_deepspeed")
LISTS = {
    "used": ADDED.used,
    "no influence": ADDED.no_influence,
    "not modelled": ADDED.not_modelled,
    "other models": ADDED.other_models,
}
EARLIER = {"layernorm-epsilon", "pad-vocab-size-to", "tokenizer-name-or-path"}
"""Read of other software's scripts too (``megatron_unmodelled``)."""
NAMES = set(Path(__file__).with_name("megatron_deepspeed_options.txt").read_text(encoding="utf-8").split())


def test_no_argument_is_in_two_lists() -> None:
    for one, other in combinations(LISTS, 2):
        assert not LISTS[one] & LISTS[other], f"{one} and {other}"


def test_every_argument_of_the_sources_is_in_a_list() -> None:
    listed = frozenset[str]().union(*LISTS.values())
    own = NAMES - known_arguments("megatron").names - EARLIER
    assert not own - listed, "sort these in"
    assert not listed - NAMES, "the sources have these no more"
