"""The protocol on the CPU: real products are timed, failures are results, samples are taken in turn."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")

from profiles.measure import protocol
from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.clocks import ClockReading, amd_reading, host_reading, nvidia_reading
from profiles.measure.device import MeasuredDevice, open_device
from profiles.measure.matmul import matmul_cases
from profiles.measure.protocol import Outcome, Protocol, error_words, time_block, timing_of
from profiles.measure.run import prepare_case

QUICK = Protocol(stable_within=1e9, min_repeats=4, fewest_samples=2, longest_warm_up_s=0.02)


@pytest.fixture(scope="module")
def cpu() -> MeasuredDevice:
    return open_device("cpu", flush_bytes=1 << 20)


def case(name: str) -> Case:
    return Case("matmul", name, "forward", "bf16", {"m": 1, "n": 1, "k": 1}, 6)


def timed(device: MeasuredDevice, calls: dict[str, Callable[[], object]], how: Protocol = QUICK) -> dict[str, Outcome]:
    outcomes = time_block(
        device,
        [case(name) for name in calls],
        lambda the_case, _: Prepared(calls[the_case.name]),
        how,
        lambda: False,
    )
    return {outcome.case.name: outcome for outcome in outcomes}


def test_a_larger_product_takes_longer(cpu: MeasuredDevice) -> None:
    cases = [
        each
        for size in (64, 1024)
        for each in matmul_cases(WantedShape("matmul", "square", {"m": size, "n": size, "k": size}), "fp32")
    ]
    outcomes = time_block(cpu, cases, prepare_case, QUICK, lambda: False)
    times = [outcome.timing.time_s for outcome in outcomes if outcome.timing is not None]
    assert len(times) == 6
    assert all(math.isfinite(time_s) and time_s > 0 for time_s in times)
    # 4096 times the work: a tenth of the time would mean that nothing was computed.
    assert max(times[:3]) < 10 * min(times[3:])


def test_a_case_that_fails_does_not_stop_the_others(cpu: MeasuredDevice) -> None:
    def broken() -> None:
        raise RuntimeError("no kernel for this shape\nand a long explanation")

    def breaks_later(count: itertools.count[int] = itertools.count()) -> None:  # noqa: B008  # counts its own calls
        if next(count) > 8:
            raise RuntimeError("fell over")

    found = timed(cpu, {"broken": broken, "good": lambda: time.sleep(1e-4), "later": breaks_later})
    assert found["broken"].timing is None
    assert found["broken"].error == "RuntimeError: no kernel for this shape"
    assert found["good"].error == ""
    assert found["good"].timing is not None
    assert found["good"].timing.time_s >= 1e-4
    assert found["later"].timing is None
    assert "fell over" in found["later"].error


def test_samples_are_taken_in_turn(cpu: MeasuredDevice) -> None:
    seen: list[str] = []
    timed(cpu, {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")})
    # Warm-ups come first, one case after the other; the samples alternate.
    assert "".join(seen)[-8:] == "abababab"


def test_a_case_ends_with_enough_repeats_or_enough_time(cpu: MeasuredDevice) -> None:
    many = Protocol(stable_within=1e9, min_repeats=20, fewest_samples=3, min_time_s=0.02, longest_warm_up_s=0.02)
    found = timed(cpu, {"quick": lambda: None, "slow": lambda: time.sleep(0.01)}, many)
    assert found["quick"].timing is not None
    assert found["slow"].timing is not None
    assert found["quick"].timing.num_samples == 20
    assert found["slow"].timing.num_samples == 3


def test_warm_up_goes_on_until_medians_agree_and_says_when_they_do_not(
    cpu: MeasuredDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock is set by hand: on a busy machine two calls of any real length may take the same time, or ten times it.
    restless = Protocol(stable_within=0.01, warm_up_batch=1, longest_warm_up_s=0.03, min_repeats=2)

    def warmed_up(durations_s: Iterable[float]) -> tuple[Outcome, int]:
        clock = iter(durations_s)
        calls = itertools.count()

        def seconds_of(_: MeasuredDevice, call: Callable[[], object]) -> float:
            call()
            return next(clock)

        monkeypatch.setattr(protocol, "seconds_of", seconds_of)
        return timed(cpu, {"a": lambda: next(calls)}, restless)["a"], next(calls)

    unstable, _ = warmed_up(itertools.cycle((1e-4, 1e-3)))
    assert unstable.detail["warm_up_stable"] is False
    # One call to size the batch, then 1, 2, 3, 3 ms: the warm-up ends with the first pair that agrees; two samples.
    calm, num_calls = warmed_up((1e-3, 1e-3, 2e-3, 3e-3, 3e-3, 5e-3, 7e-3))
    assert "warm_up_stable" not in calm.detail
    assert num_calls == 7
    assert calm.timing is not None
    assert (calm.timing.min_s, calm.timing.max_s) == (5e-3, 7e-3)


def test_cases_after_the_deadline_are_not_begun(cpu: MeasuredDevice) -> None:
    turns = iter((False, True))
    outcomes = time_block(cpu, [case("a"), case("b")], lambda *_: Prepared(lambda: None), QUICK, lambda: next(turns))
    assert [outcome.case.name for outcome in outcomes] == ["a"]


def test_the_cache_is_flushed_before_each_sample_and_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    device = open_device("cpu", flush_bytes=1 << 20)
    order: list[str] = []

    def flush(_: MeasuredDevice) -> None:
        order.append("flush")
        time.sleep(0.01)

    monkeypatch.setattr(MeasuredDevice, "flush_cache", flush)
    found = timed(device, {"a": lambda: order.append("call")})
    samples = order[order.index("flush") :]
    assert samples == ["flush", "call"] * 4
    assert found["a"].timing is not None
    assert found["a"].timing.time_s < 0.01
    assert found["a"].detail["cache"] == "cold"


def test_short_calls_are_timed_as_the_difference_of_two_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    # No graph exists on a CPU: the replay calls what a capture would have recorded, plus its own launch.
    def record(_: MeasuredDevice, calls: list[Callable[[], object]]) -> Callable[[], object]:
        def replay() -> None:
            time.sleep(0.12)
            for call in calls:
                call()

        return replay

    monkeypatch.setattr(protocol, "can_capture", lambda _: True)
    monkeypatch.setattr(protocol, "capture", record)
    prepared: list[Case] = []

    def prepare(the_case: Case, _: MeasuredDevice) -> Prepared:
        prepared.append(the_case)
        return Prepared(lambda: time.sleep(2e-3))

    device = open_device("cpu", flush_bytes=20)
    # On a busy machine even this call may last longer than what is worth a graph.
    always = replace(QUICK, graph_below_s=10.0)
    (outcome,) = time_block(device, [case("short")], prepare, always, lambda: False)
    assert outcome.timing is not None
    # The launch of 120 ms is in both graphs and cancels; spread over four copies it would be 30 ms.
    assert 0 < outcome.timing.time_s < 24e-3
    assert outcome.detail == {"method": "graph", "copies": 4, "cache": "cold"}
    # Sets of 6 bytes each until they exceed the cache of 20.
    assert len(prepared) == 4


def test_what_cannot_be_captured_falls_back_and_says_so(cpu: MeasuredDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "can_capture", lambda _: True)
    monkeypatch.setattr(protocol, "capture", lambda *_: None)
    found = timed(cpu, {"a": lambda: time.sleep(1e-4)})
    assert found["a"].timing is not None
    assert found["a"].detail["method"] == "host clock"


def test_median_and_quantiles() -> None:
    timing = timing_of([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (timing.time_s, timing.min_s, timing.max_s, timing.num_samples) == (3.0, 1.0, 5.0, 5)
    assert (timing.p10_s, timing.p90_s, timing.statistic) == (1.0, 5.0, "median")


def test_errors_are_one_short_line() -> None:
    assert error_words(ValueError("")) == "ValueError: "
    assert len(error_words(RuntimeError("x" * 1000))) == 200


def test_nvidia_smi_line() -> None:
    reading = nvidia_reading("1980, 123.45, 41, 0x0000000000000004, 700.00, 570.86.15\n")
    assert reading == ClockReading(1.98e9, 123.45, 41.0, "0x0000000000000004", 700.0, "570.86.15")
    assert nvidia_reading("1980, 120, 41, 0x0000000000000000, 700.00, 570.86.15").throttle_reasons == ""
    assert nvidia_reading("[N/A], [N/A], 41, 0x0, [N/A], 570.1").clock_hz is None
    for odd in ("", "No devices were found", "a, b"):
        assert nvidia_reading(odd) == ClockReading()


def test_rocm_smi_json() -> None:
    answer = (
        '{"card0": {"sclk clock speed:": "(2100Mhz)", "Current Socket Graphics Package Power (W)": "141.0", '
        '"Temperature (Sensor junction) (C)": "40.0", "Max Graphics Package Power (W)": "750.0"}, '
        '"system": {"Driver version": "6.10.5"}}'
    )
    assert amd_reading(answer) == ClockReading(2.1e9, 141.0, 40.0, "", 750.0, "6.10.5")
    for odd in ("", "ERROR: no AMD GPU", "[1]", "{}"):
        assert amd_reading(odd) == ClockReading()


def test_a_clock_that_moved() -> None:
    slow, fast = host_reading("cpu MHz : 1000.0\ncpu MHz\t\t: 2000.0\n"), ClockReading(clock_hz=1.65e9)
    assert slow.clock_hz == 1.5e9
    assert slow.moved(fast) == pytest.approx(0.1)
    assert slow.moved(ClockReading()) is None
    assert host_reading("nothing").clock_hz is None
