"""Every argument that MindSpeed adds is one of: used, without influence on the plan, not modelled, another model."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from planner.backends.mindspeed.flag_table import CORE_VERSION, known_flags
from planner.model.argument_lists import known_arguments
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_unmodelled import argument_lists

ADDED = known_arguments("mindspeed")
LISTS = {
    "used": ADDED.used,
    "no influence": ADDED.no_influence,
    "not modelled": ADDED.not_modelled,
    "other models": ADDED.other_models,
}
MEGATRON = known_arguments("megatron").names
EARLIER = {"use-custom-fsdp", "pad-vocab-size-to", "tokenizer-name-or-path"}
"""Read of other software's scripts too (``megatron_unmodelled``)."""
LAUNCHER = {"nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port"}
"""Of ``mindspeed/arguments.py``'s own launcher; the reader takes them of the launcher in front of the program."""
NAMES = set(Path(__file__).with_name("mindspeed_options.txt").read_text(encoding="utf-8").split())


def test_no_argument_is_in_two_lists() -> None:
    for one, other in combinations(LISTS, 2):
        assert not LISTS[one] & LISTS[other], f"{one} and {other}"


def test_every_argument_of_the_sources_is_in_a_list() -> None:
    listed = frozenset[str]().union(*LISTS.values())
    own = NAMES - MEGATRON - EARLIER - LAUNCHER
    assert len(own) == 452
    assert not own - listed, "sort these in"
    assert not listed - own, "the sources have these no more"


def test_no_flag_that_a_plan_writes_is_unknown() -> None:
    words = tuple(known_flags(CORE_VERSION))
    assert len(words) > 100
    assert argument_lists(MegatronFlags(words, "a"), words, "mindspeed").unknown == ()
