"""Goodput: closed forms against a replay of events, Young and Daly where they hold, and published runs."""

from __future__ import annotations

import math
import random

import pytest

from planner.backends.registry import software
from planner.errors import DocumentInvalid
from planner.predict.memory.states import checkpoint_bytes
from planner.question.problem import Workload
from planner.question.reliability import Reliability
from planner.search.goodput.failures import FailureRates, failure_rates, published_runs, run_of_device
from planner.search.goodput.goodput import Goodput, goodput
from planner.search.goodput.interval import Interruptions, best_spares, waiting_for_repair
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan

STORAGE = Reliability(storage_bandwidth_bytes_per_s=100e9)
DP8 = Strategy(dp_shard=8, num_microbatches=8, zero_stage=1)


def answer(**said: object) -> Goodput:
    return goodput(make_plan(DP8), STORAGE.model_copy(update=said))


def replayed(job: Interruptions, work_s: float, failures: int, seed: int) -> tuple[float, float]:
    """Useful part and restarting part of a run that is played event by event until so many failures."""
    draw = random.Random(seed)
    now = saved = restarting = 0.0
    durable_at: list[tuple[float, float]] = []
    for _ in range(failures):
        fails_at = now + draw.expovariate(job.rate)
        done = saved
        while now + work_s + job.stall_s <= fails_at:
            now, done = now + work_s + job.stall_s, done + work_s
            durable_at.append((now + job.lag_s, done))
        whole = [work for at, work in durable_at if at <= fails_at]
        saved, durable_at, now = max(whole, default=saved), [], fails_at
        down = job.restart_s
        while (again := draw.expovariate(job.rate)) < down:
            now, restarting = now + again, restarting + again
        now, restarting = now + down, restarting + down
    return saved / now, restarting / now


@pytest.mark.parametrize(
    ("job", "work_s"),
    [
        (Interruptions(1 / 11_000, 3.0, 600.0), 250.0),
        (Interruptions(1 / 4_000, 60.0, 900.0), 700.0),
        (Interruptions(1 / 11_000, 1.0, 600.0, lag_s=60.0), 240.0),
    ],
    ids=["much storage", "little storage", "asynchronous"],
)
def test_the_useful_part_is_that_of_a_replay(job: Interruptions, work_s: float) -> None:
    useful, restarting = replayed(job, work_s, 6_000, seed=7)
    assert job.useful(work_s) == pytest.approx(useful, rel=0.01)
    assert job.restarting() == pytest.approx(restarting, rel=0.05)


def test_no_other_interval_is_better() -> None:
    job = Interruptions(1 / 4_000, 60.0, 900.0)
    best_s = job.best_interval_s()
    assert all(job.useful(best_s) >= job.useful(best_s * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


@pytest.mark.parametrize("stall_s", [1e-3, 0.1, 10.0])
def test_the_best_interval_is_youngs_and_dalys_where_a_stall_is_short(stall_s: float) -> None:
    """Daly 2006, equation 37: sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d, for d < M / 2."""
    mean_s = 10_000.0
    job = Interruptions(1 / mean_s, stall_s, 600.0)
    half = stall_s / (2 * mean_s)
    daly_s = math.sqrt(2 * stall_s * mean_s) * (1 + math.sqrt(half) / 3 + half / 9) - stall_s
    assert job.best_interval_s() == pytest.approx(daly_s, rel=1e-4)
    assert job.best_interval_s() == pytest.approx(job.young_s(), rel=1.01 * math.sqrt(half))


def test_waiting_for_repairs_is_that_of_a_replay() -> None:
    rate, repair_s, spares, draw = 1 / 10_000, 30_000.0, 3, random.Random(3)
    now = waiting = 0.0
    back: list[float] = []
    for _ in range(20_000):
        now += draw.expovariate(rate)
        back = sorted([*(at for at in back if at > now), now + repair_s])
        if len(back) > spares:
            waiting += back[0] - now
            now = back[0]
    assert waiting_for_repair(rate * repair_s, spares) == pytest.approx(waiting / now, rel=0.03)


@pytest.mark.parametrize("load", [0.0, 0.3, 6.0])
def test_no_other_number_of_spare_nodes_is_better(load: float) -> None:
    worth = [(1 - waiting_for_repair(load, count)) / (64 + count) for count in range(200)]
    assert best_spares(load, 64) == worth.index(max(worth))


def test_rates_are_those_that_the_runs_publish() -> None:
    """The Llama 3 report: 419 in 54 days, one in three hours; RSC-1 projects 1.8 h at 16,384 devices."""
    llama = failure_rates("llama-3-405b")
    assert llama.per_device_hour() * 16_384 * 54 * 24 == pytest.approx(419)
    assert hours_between(llama, 16_384) == pytest.approx(3.1, abs=0.05)
    assert hours_between(failure_rates("rsc-1"), 16_384) == pytest.approx(1.8, abs=0.05)
    assert hours_between(failure_rates("rsc-1"), 131_072) == pytest.approx(0.23, abs=0.01)
    assert [run_of_device(name) for name in ("A100-80G-SXM", "h100-sxm", "tpu-v5p")] == ["rsc-1", *["llama-3-405b"] * 2]
    assert all(failure_rates(run).source for run in published_runs())


def hours_between(rates: FailureRates, devices: int) -> float:
    return 1 / (rates.per_device_hour() * devices)


def test_the_time_that_counts_of_llama_3_is_what_its_report_says() -> None:
    """Above 90 %: 2 TB/s of storage (section 3.3.1), 405 billion parameters of 14 bytes, MegaScale's 10 minutes."""
    write_s = 405e9 * 14 / 2e12
    job = Interruptions(1 / (3.093 * 3600), write_s, 600.0 + write_s)
    assert 0.90 < job.useful(job.best_interval_s()) < 0.95


def test_what_a_checkpoint_holds_is_what_the_software_saves() -> None:
    work = Workload(global_batch_size=8, sequence_length=1024)
    assert checkpoint_bytes(work, 1, False, software("megatron").release.physics) == 14
    assert checkpoint_bytes(work, 3, False, software("torchtitan").release.physics) == 12
    assert checkpoint_bytes(work, 3, False, software("maxtext").release.physics) == 12
    assert checkpoint_bytes(work, 2, False, software("deepspeed").release.physics) == 14
    assert checkpoint_bytes(work, 3, False, software("deepspeed").release.physics) == 12


def test_the_parts_of_the_time_add_up_and_the_interval_is_whole_steps() -> None:
    found = answer(repair_hours=48.0, failures_per_device_hour=1e-3)
    lost = found.lost
    parts = (found.useful, lost.checkpoints, lost.done_again, lost.restarts, lost.waiting)
    assert sum(parts) == pytest.approx(1.0)
    assert min(parts) > 0
    assert found.tokens_per_day == pytest.approx(found.useful * found.tokens_per_day_without_failures)
    assert found.interval_s == pytest.approx((found.interval_steps or 0) * make_plan(DP8).step_time_s)
    assert found.spare_nodes == found.best_spare_nodes
    assert max(found.spares, key=lambda row: row.tokens_per_device_day).spare_nodes == found.best_spare_nodes


def test_days_and_money_to_a_goal_count_spare_devices() -> None:
    said = STORAGE.model_copy(update={"repair_hours": 24.0, "spare_nodes": 2})
    found = goodput(make_plan(DP8), said, tokens=1e12, price_per_device_hour=2.0)
    assert found.days == pytest.approx(1e12 / found.tokens_per_day)
    assert found.cost == pytest.approx(2.0 * (8 + 2 * 8) * 24 * (found.days or 0))


def test_without_failures_nothing_is_lost() -> None:
    found = answer(failures_per_device_hour=0.0)
    assert (found.useful, found.interval_steps, found.mean_time_between_failures_s) == (1.0, None, None)


def test_a_checkpoint_beside_training_stops_it_for_less() -> None:
    waited, beside = answer(), answer(asynchronous=True)
    assert waited.checkpoint_stall_s == waited.checkpoint_write_s == beside.checkpoint_write_s
    assert beside.checkpoint_stall_s < waited.checkpoint_stall_s


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"spare_nodes": 2}, "how long a repair takes"),
        ({"failures_of": "gpt-5"}, "no failures of a run"),
        ({"failures_of": "rsc-1", "failures_per_device_hour": 1e-5}, "a published run and a rate"),
    ],
)
def test_what_cannot_be_answered_is_refused(said: dict[str, object], words: str) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        answer(**said)
