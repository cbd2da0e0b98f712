"""The summary of a profile says what its tables and curves hold."""

from __future__ import annotations

import numpy as np
import pytest

from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.fit_summary import collective_fits, table_fits
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.residuals import point_residuals, site_residuals
from profiles.prediction.roofline import Roofline

ROOF = Roofline(flops_per_s=1e15, bytes_per_s=3e12, width_bytes=2.0)


def table(variant: str, transferred_from: str = "") -> OperatorTable:
    # The last point of six is missing: a hole.
    sites = np.repeat(np.array([[1.0, 8.0, 8.0], [2.0, 16.0, 4.0], [4.0, 32.0, 8.0]]), 2, axis=0)[:5]
    axis = np.tile([512.0, 4096.0], 3)[:5]
    roofline_s = ROOF.attention_s(sites[:, 0], axis, sites[:, 1], sites[:, 2], float(variant))
    curves = build_curves(sites, axis, roofline_s, roofline_s / np.array([0.2, 0.6, 0.3, 0.62, 0.33]))
    origin = TableOrigin(
        operator="attention", dtype="bf16", variant=variant, num_points=5, transferred_from=transferred_from
    )
    return OperatorTable(curves, ROOF, origin)


def profile() -> Profile:
    made = Profile("h100-sxm5-80gb")
    for variant, lent in (("64", ""), ("128", "h200-sxm-141gb"), ("96", "")):
        made.operators["attention", "bf16", variant] = table(variant, lent)
    sizes = np.array([1024.0, 1048576.0, 4194304.0])
    wide, narrow = CollectiveKey("all_reduce", 16, 2), CollectiveKey("all_reduce", 8, 1)
    made.collectives = collective_curves(
        {wide: (sizes, np.array([3e-5, 6e-5, 2e-4])), narrow: (sizes, np.array([1e-5, 2e-5, 5e-5]))}
    )
    made.collective_origins = tuple(
        TableOrigin(operator="all_reduce", dtype="", variant=words, environment=f"nccl for {words}")
        for words in ("8 ranks on 1 node", "16 ranks on 2 nodes")
    )
    return made


def test_tables_come_in_the_order_of_numbers() -> None:
    assert [fit.origin.variant for fit in table_fits(profile())] == ["64", "96", "128"]


def test_a_table_tells_its_sizes_and_how_much_of_its_grid_is_measured() -> None:
    fit = table_fits(profile())[0]
    assert (fit.num_sites, fit.num_axis_sizes) == (3, 2)
    assert fit.measured_share == pytest.approx(5 / 6)
    assert fit.sizes == {
        "query_length": (512.0, 4096.0),
        "batch_size": (1.0, 4.0),
        "num_heads": (8.0, 32.0),
        "num_kv_heads": (4.0, 8.0),
    }


def test_a_table_tells_its_residuals_and_a_transferred_one_has_none() -> None:
    first, _, lent = table_fits(profile())
    own = table("64")
    assert first.site_left_out == site_residuals(own).summary()
    assert first.point_left_out == point_residuals(own).summary()
    assert first.site_left_out is not None
    assert first.site_left_out.num_points == 5
    assert (lent.site_left_out, lent.point_left_out) == (None, None)


def test_the_spread_of_an_unseen_site_is_what_the_sites_say_of_each_other() -> None:
    fit, curves = table_fits(profile())[0], table("64").curves
    assert fit.sigma_exact == curves.sigma_exact
    typical = np.unique(site_residuals(table("64")).sigma)
    assert fit.sigma_unseen_site is not None
    assert typical.min() <= fit.sigma_unseen_site <= typical.max()


def test_one_curve_alone_says_nothing_of_unseen_sites() -> None:
    axis = np.array([1e6, 1e7])
    roofline_s = ROOF.moved_s(axis)
    curves = build_curves(np.ones((2, 1)), axis, roofline_s, roofline_s * 2.0)
    made = Profile("h100-sxm5-80gb")
    made.operators["norm", "bf16", ""] = OperatorTable(curves, ROOF, TableOrigin(operator="norm", dtype="bf16"))
    (fit,) = table_fits(made)
    assert fit.sigma_unseen_site is None
    assert fit.sizes == {"moved_bytes": (1e6, 1e7)}


def test_curves_of_collectives_tell_latency_and_bus_bandwidth() -> None:
    narrow, wide = collective_fits(profile())
    assert (narrow.key.group_size, wide.key.group_size) == (8, 16)
    assert narrow.origin.environment == "nccl for 8 ranks on 1 node"
    assert (narrow.num_sizes, narrow.smallest_bytes, narrow.largest_bytes) == (3, 1024.0, 4194304.0)
    assert narrow.latency_s == pytest.approx(1e-5)
    # The largest message is the fastest: 4 MiB in 50 us, times 2 x 7 / 8 on the bus.
    assert narrow.largest_bus_bandwidth_bytes_per_s == pytest.approx(4194304 / 5e-5 * 1.75)
