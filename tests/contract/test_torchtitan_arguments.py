"""The reader of torchtitan's job files knows every setting and every flavor of the pinned releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.checking.environment import is_ready, overlay
from planner.backends.torchtitan import job_keys
from planner.backends.torchtitan.fields import known_fields
from planner.backends.torchtitan.flavors import KERNELS, flavor_model, flavors
from planner.backends.torchtitan.job_keys import list_of
from planner.backends.torchtitan.validator import VALIDATOR
from planner.errors import DocumentInvalid
from tests.contract import torchtitan_registry

RELEASE = "0.2.2"
KEYS = job_keys.known_keys()


def folder() -> Path:
    if not is_ready(VALIDATOR, RELEASE):
        pytest.skip(f"validator torchtitan=={RELEASE} is not installed: python -m tests.install_validators")
    return overlay(VALIDATOR, RELEASE) / "torchtitan"


def test_no_setting_is_in_two_lists() -> None:
    assert not KEYS["used"] & KEYS["not_modelled"]
    assert not KEYS["no_influence"] & (KEYS["used"] | KEYS["not_modelled"])
    assert set(job_keys.ASSUMED) <= KEYS["not_modelled"]


def test_every_setting_of_the_toml_is_in_a_list() -> None:
    keys = torchtitan_registry.job_keys(folder() / "config" / "job_config.py")
    assert len(keys) == 149
    assert not {key for key in keys if list_of(key, "?") == "unknown"}, "sort these in"
    later = {f"{section}.{key}" for section, names in known_fields("0.3.0").items() for key in names}
    branch = {"training.max_context_length", "training.num_tokens_per_microbatch_per_dp_rank"}
    listed = KEYS["used"] | KEYS["not_modelled"] | KEYS["no_influence"]
    assert not listed - keys - later - branch, "no release has these"


def test_every_setting_of_the_later_release_is_in_a_list() -> None:
    for section, names in known_fields("0.3.0").items():
        for name in names:
            assert list_of(f"{section}.{name}", "?") != "unknown", f"{section}.{name}"


def test_the_flavors_are_those_of_the_release() -> None:
    shipped = torchtitan_registry.flavors(folder() / "models")
    mine = flavors()
    assert mine.keys() == shipped.keys()
    for family, table in shipped.items():
        plain = {name for name in table if not name.endswith(KERNELS)}
        assert set(mine[family]) == plain
        for name, sizes in mine[family].items():
            theirs = table[name]
            experts = sizes.get("moe_args", {})
            assert {key: theirs["moe_args"][key] for key in experts} == experts
            assert {key: theirs[key] for key in sizes if key != "moe_args"} == {
                key: value for key, value in sizes.items() if key != "moe_args"
            }


def test_every_flavor_is_a_model_or_refused() -> None:
    refused = set[str]()
    for family, table in flavors().items():
        for flavor in table:
            try:
                assert flavor_model(family, flavor, "a").num_layers > 0
            except DocumentInvalid:
                refused.add(flavor)
    assert refused == {"debugmodel_irope", "17bx16e_irope", "17bx128e_irope"}
