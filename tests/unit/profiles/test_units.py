"""Quantities with units, in and out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.errors import DocumentInvalid
from profiles.units import (
    format_bytes,
    format_bytes_per_s,
    parse_bytes,
    parse_bytes_per_s,
    parse_flops_per_s,
    parse_seconds,
    quantity_parser,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "80 GiB", 80 * 2**30),
        (parse_bytes, "80GB", 80 * 10**9),
        (parse_bytes, "2_000 MiB", 2000 * 2**20),
        (parse_bytes, "1.5 TiB", 3 * 2**39),
        (parse_bytes, "4096", 4096),
        (parse_bytes_per_s, "400 Gbit/s", 50e9),
        (parse_bytes_per_s, "400 Gbps", 50e9),
        (parse_bytes_per_s, "400Gb/s", 50e9),
        (parse_bytes_per_s, "450 GB/s", 450e9),
        (parse_bytes_per_s, "450 GBps", 450e9),
        (parse_bytes_per_s, "3.35 TB/s", 3.35e12),
        (parse_bytes_per_s, "2575 GiB/s", 2575 * 2**30),
        (parse_seconds, "3 us", 3e-6),
        (parse_seconds, "1.9 us", 1.9e-6),
        (parse_seconds, "2 µs", 2e-6),
        (parse_seconds, "1.5 ms", 1.5e-3),
        (parse_seconds, "250 ns", 250e-9),
        (parse_seconds, "2 min", 120.0),
        (parse_flops_per_s, "989 TFLOP/s", 989e12),
        (parse_flops_per_s, "2.5 PFLOPS", 2.5e15),
    ],
)
def test_read(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        (parse_bytes, "80 Gbit", "GiB"),
        (parse_bytes, "80 GB/s", "GiB"),
        (parse_bytes, "eighty", "80 GiB"),
        (parse_bytes, "", "80 GiB"),
        (parse_bytes_per_s, "400 gbps", "Gbit/s"),
        (parse_bytes_per_s, "400 GB", "Gbit/s"),
        (parse_bytes_per_s, "1e999 GB/s", "400 Gbit/s"),
        (parse_bytes_per_s, "nan", "400 Gbit/s"),
        (parse_seconds, "3 parsecs", "us"),
        (parse_seconds, "1e99999999999999999999 s", "3 us"),
        (parse_flops_per_s, "989 TB/s", "TFLOP/s"),
    ],
)
def test_refused_with_place_and_repair(parse: Callable[[str, str], float], text: str, hint: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse(text, "c.yaml#/x")
    assert caught.value.where == "c.yaml#/x"
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "parser"),
    [
        ("memory_bytes", parse_bytes),
        ("nic_bandwidth_bytes_per_s", parse_bytes_per_s),
        ("peak_flops_per_s", parse_flops_per_s),
        ("latency_s", parse_seconds),
        ("num_nodes", None),
        ("devices", None),
    ],
)
def test_a_field_name_tells_its_unit(name: str, parser: object) -> None:
    assert quantity_parser(name) is parser


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_bytes(85018279936), "79.2 GiB"),
        (format_bytes(0), "0 B"),
        (format_bytes(1023.9 * 2**20), "1.00 GiB"),
        (format_bytes_per_s(450e9), "450 GB/s"),
        (format_bytes_per_s(3.35e12), "3.35 TB/s"),
    ],
)
def test_shown_to_people(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.floats(1e4, 1e15))
def test_what_is_shown_is_within_half_a_percent(size_bytes: float) -> None:
    assert parse_bytes(format_bytes(size_bytes)) == pytest.approx(size_bytes, rel=5.1e-3)
