"""All that a training plan would look up in vain is named, with a command that measures it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.predict.coverage.training_gaps import COLLECTIVES, MOVED, Gap, training_gaps
from profiles.catalogue import load_device
from profiles.measure.operators import COMMUNICATION, KINDS
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.roofline import Roofline

H100, A100 = load_device("h100-sxm5-80gb"), load_device("a100-sxm4-80gb")
ROOF = Roofline(flops_per_s=1e15, bytes_per_s=3e12, width_bytes=2.0)
CURVE = CollectiveCurve(np.array([1e3, 1e6]), np.array([1e-5, 1e-4]), 0.03)
TABLES = (
    ("matmul", "bf16", ""),
    ("matmul", "bf16", "dgrad"),
    ("matmul", "bf16", "wgrad"),
    ("matmul", "fp8", ""),
    ("grouped_matmul", "bf16", ""),
    ("attention", "bf16", "128"),
    *((name, "bf16", "") for name in MOVED),
)


def table(operator: str, dtype: str, variant: str, largest: float = 32768.0, lent: str = "") -> OperatorTable:
    axis = np.array([128.0, largest])
    curves = build_curves(np.ones((2, 2)), axis, np.ones(2), 2.0 * np.ones(2))
    origin = TableOrigin(operator=operator, dtype=dtype, variant=variant, transferred_from=lent)
    return OperatorTable(curves, ROOF, origin)


def whole() -> Profile:
    """A profile that has everything."""
    made = Profile(H100.name, operators={key: table(*key) for key in TABLES})
    for operation in COLLECTIVES:
        for nodes in (1, 2):
            made.collectives[CollectiveKey(operation, 8 * nodes, nodes)] = CURVE
    return made


def codes(profile: Profile, device: str = H100.name) -> list[str]:
    return [gap.code for gap in training_gaps(profile, load_device(device))]


def test_a_whole_profile_misses_nothing() -> None:
    assert codes(whole()) == []


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (("matmul", "bf16", ""), "no-matmul-bf16"),
        (("matmul", "bf16", "dgrad"), "no-gradients"),
        (("matmul", "fp8", ""), "no-matmul-fp8"),
        (("grouped_matmul", "bf16", ""), "no-grouped-matmul"),
        (("attention", "bf16", "128"), "no-attention"),
        (("norm", "bf16", ""), "no-memory-bound-operators"),
    ],
)
def test_a_missing_table_is_named(key: tuple[str, str, str], code: str) -> None:
    profile = whole()
    del profile.operators[key]
    assert codes(profile) == [code]


@pytest.mark.parametrize(("nodes", "code"), [(1, "no-collectives-inside-a-node"), (2, "no-collectives-across-nodes")])
def test_missing_collectives_are_named(nodes: int, code: str) -> None:
    profile = whole()
    del profile.collectives[CollectiveKey("send_recv", 8 * nodes, nodes)]
    (gap,) = training_gaps(profile, H100)
    assert gap.code == code
    assert "send_recv" in gap.what
    assert "all_reduce" not in gap.what


def test_transferred_and_short_tables_are_named() -> None:
    profile = whole()
    profile.operators["matmul", "bf16", ""] = table("matmul", "bf16", "", lent="h200-sxm-141gb")
    profile.operators["attention", "bf16", "128"] = table("attention", "bf16", "128", largest=4096.0)
    gaps = training_gaps(profile, H100)
    assert [gap.code for gap in gaps] == ["transferred-matmul-bf16", "short-attention-bf16"]
    assert "h200-sxm-141gb" in gaps[0].what
    assert "4,096" in gaps[1].what


def test_fp8_is_not_missed_where_the_device_has_none() -> None:
    profile = whole()
    del profile.operators["matmul", "fp8", ""]
    assert codes(profile, A100.name) == []


def test_every_command_is_one_that_measure_takes() -> None:
    gaps = training_gaps(Profile(H100.name), H100)
    assert len(gaps) == 7
    for gap in gaps:
        assert names(gap) <= {*KINDS, *COMMUNICATION}
        assert names(gap)


def names(gap: Gap) -> set[str]:
    """What follows --only."""
    words = gap.command.split()
    return set(words[words.index("--only") + 1].split(","))
