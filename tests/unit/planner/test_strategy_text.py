from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from planner.errors import DocumentInvalid
from planner.strategy.fields import FIELD, FIELDS, KEYS, PINNABLE
from planner.strategy.strategy import Strategy
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.validation import FindingsInvalid


def test_lists_and_repeated_flags_add_up() -> None:
    values = parse_assignments(["tp=8,pp=4", "sp=true", "schedule=zb_h1"], "--pin")
    assert values == {"tp": 8, "pp": 4, "sp": True, "schedule": "zb_h1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mbs=2", {"micro_batch_size": 2}),
        ("zero=3", {"zero_stage": 3}),
        ("vp=2", {"vpp": 2}),
        (" tp = 8 ", {"tp": 8}),
        ("sp=off", {"sp": False}),
        ("cp_kind=ring", {"cp_kind": "ring"}),
        ("axis_order=tp-cp-ep-pp-dp", {"axis_order": "tp-cp-ep-pp-dp"}),
        ("recompute_modules=norm+mlp", {"recompute_modules": "norm+mlp"}),
    ],
)
def test_words_of_the_field_are_understood(text: str, expected: dict[str, object]) -> None:
    assert parse_assignments([text], "--strategy") == expected


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("tpp=8", "unknown strategy field 'tpp'", "did you mean 'tp'?"),
        ("foo=3", "unknown strategy field 'foo'", "known: tp"),
        ("tp", "'tp' is not FIELD=VALUE", "tp=8"),
        ("=8", "not FIELD=VALUE", "tp=8"),
        ("tp=", "not FIELD=VALUE", "tp=8"),
        ("tp=0", "tp = 0 is out of range", "from 1"),
        ("tp=-4", "tp = -4 is out of range", "from 1"),
        ("tp=1.5", "whole number, not '1.5'", "tp=1"),
        ("tp=nan", "whole number", "tp=1"),
        ("tp=٣", "whole number", "tp=1"),
        ("tp=" + "9" * 5000, "whole number", "tp=1"),
        ("zero=4", "zero_stage = 4 is out of range", "0 to 3"),
        ("sp=maybe", "true or false", "sp=true"),
        ("schedule=interleave", "no value 'interleave'", "did you mean 'interleaved'?"),
        ("recompute_modules=norm+nrm", "no value 'nrm'", "did you mean 'norm'?"),
    ],
)
def test_what_cannot_be_used_is_named_with_a_repair(text: str, what: str, hint: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_assignments([text], "--pin")
    assert what in caught.value.what
    assert (caught.value.where or "").split()[0] == "--pin"
    assert hint in (caught.value.hint or "")


def test_all_findings_come_at_once() -> None:
    with pytest.raises(FindingsInvalid) as caught:
        parse_assignments(["tpp=8,pp=0", "sp=maybe", "dp"], "--pin")
    assert [each.pointer for each in caught.value.findings] == ["/tpp", "/pp", "/sp", ""]
    assert caught.value.where == "--pin"
    assert "\n  tpp: unknown strategy field 'tpp' (did you mean 'tp'?)\n  pp: pp = 0" in caught.value.what
    assert "\n  'dp' is not FIELD=VALUE" in caught.value.what


def test_one_finding_is_where_its_field_was_written() -> None:
    with pytest.raises(FindingsInvalid) as caught:
        parse_assignments(["tp=8,mbs=0"], "--pin")
    assert (caught.value.where, caught.value.findings[0].pointer) == ("--pin mbs", "/mbs")


def test_two_values_for_one_field_contradict_each_other() -> None:
    with pytest.raises(DocumentInvalid, match="given twice"):
        parse_assignments(["tp=4", "tp=8"], "--pin")
    assert parse_assignments(["mbs=2", "micro_batch_size=2"], "--pin") == {"micro_batch_size": 2}


def test_every_field_of_a_strategy_can_be_said() -> None:
    assert set(KEYS) == set(Strategy().to_dict())
    assert set(KEYS) - set(PINNABLE) == {"recompute_modules"}


def test_the_declared_values_are_those_of_the_types() -> None:
    types = get_type_hints(Strategy) | {"dp": int}
    for each in FIELDS:
        kind = types[each.name]
        assert (each.kind == "switch") == (kind is bool), each.name
        assert (each.kind == "count") == (kind is int), each.name
        if each.kind == "word":
            assert set(get_args(kind)) <= set(each.words), each.name
    assert set(get_args(get_args(types["recompute_modules"])[0])) == set(FIELD["recompute_modules"].words)


def test_a_whole_strategy_is_what_is_forbidden_where_nothing_is_chosen() -> None:
    """Forbidding a field holds it where a plain strategy has it, but for the states that ZeRO shards by default."""
    plain = Strategy().to_dict()
    differs = {each.name for each in FIELDS if each.neutral is not None and each.neutral != plain[each.name]}
    assert differs == {"zero_stage", "overlap_grad_reduce", "overlap_param_gather"}


def test_data_parallelism_takes_the_devices_that_are_left() -> None:
    strategy, notes = complete_strategy({"tp": 4, "pp": 2}, 64, 128)
    assert (strategy.dp_replicate, strategy.dp_shard, strategy.num_microbatches) == (1, 8, 16)
    assert strategy.sp
    assert strategy.world_size == 64
    assert strategy.global_batch_size == 128
    assert set(notes) == {"dp_replicate=1", "dp_shard=8", "sp=true", "micro_batch_size=1", "num_microbatches=16"}


def test_what_is_given_is_kept() -> None:
    given = {"tp": 2, "sp": False, "dp": 4, "dp_replicate": 2, "micro_batch_size": 2}
    strategy, _ = complete_strategy(dict(given), 8, 64)
    assert strategy == Strategy(tp=2, sp=False, dp_replicate=2, dp_shard=2, micro_batch_size=2, num_microbatches=8)


def test_virtual_stages_mean_interleaving_in_groups_of_the_pipeline() -> None:
    strategy, _ = complete_strategy({"pp": 4, "vpp": 2}, 8, 16)
    assert (strategy.schedule, strategy.microbatch_group_size) == ("interleaved", 4)


def test_v_schedules_have_two_chunks() -> None:
    strategy, _ = complete_strategy({"pp": 4, "schedule": "zbv"}, 8, 16)
    assert strategy.vpp == 2


def test_modules_to_recompute_mean_selective_recompute() -> None:
    strategy, _ = complete_strategy({"recompute_modules": "norm+activation"}, 1, 4)
    assert (strategy.recompute, strategy.recompute_modules) == ("selective", ("norm", "activation"))


@pytest.mark.parametrize(
    ("values", "devices", "batch", "what", "pointer", "also"),
    [
        ({"tp": 3}, 8, 8, "does not divide the 8 devices", "/tp", ("--devices",)),
        ({"pp": 3, "cp": 1}, 8, 8, "does not divide the 8 devices", "/cp", ("/pp", "--devices")),
        ({"dp": 4, "dp_replicate": 3}, 4, 8, "not dp_replicate", "/dp", ("/dp_replicate",)),
        (
            {"dp": 4, "dp_replicate": 2, "dp_shard": 4},
            *(4, 8, "not dp_replicate", "/dp", ("/dp_shard", "/dp_replicate")),
        ),
        ({"dp": 2, "dp_shard": 4}, 4, 8, "not dp_replicate", "/dp", ("/dp_shard",)),
        ({"dp": 4}, 4, 6, "does not divide the global batch", "/dp", ("--devices", "--global-batch-size")),
        ({}, 4, 6, "does not divide the global batch", "/micro_batch_size", ("--devices", "--global-batch-size")),
        (
            {"micro_batch_size": 4, "num_microbatches": 4},
            *(1, 8, "does not divide the global batch", "/micro_batch_size"),
            ("/num_microbatches", "--devices", "--global-batch-size"),
        ),
    ],
)
def test_numbers_that_do_not_divide_are_refused_beside_the_fields_given(
    values: dict[str, int], devices: int, batch: int, what: str, pointer: str, also: tuple[str, ...]
) -> None:
    with pytest.raises(FindingsInvalid, match=what) as caught:
        complete_strategy(dict(values), devices, batch)
    found = caught.value.findings[0]
    assert (found.pointer, found.also) == (pointer, also)
    assert caught.value.where == f"--strategy {pointer[1:]}"
    assert caught.value.hint
