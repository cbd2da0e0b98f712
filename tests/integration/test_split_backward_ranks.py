"""Two gloo ranks show what the rule torchtitan.P6 says: schedules that split backward passes fail on compiled layers.

pytorch issue 161904 and pull request 162511, torchtitan issue 3584.  When a case of ``FAILS`` trains one day, the rule
has lost its ground.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.backends.torchtitan.degrees import SCHEDULES, SPLIT_BACKWARD_SCHEDULES
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.sampling import drawn
from tests.warm_python.interpreters import NATIVE, WarmPythons

pytest.importorskip("torch.distributed.pipelining", reason="torch has no pipelining")
pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("split_backward_worker.py")
FAILS = sorted(SCHEDULES[name] for name in SPLIT_BACKWARD_SCHEDULES)


Trained = Callable[[str, str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def trained(warm_pythons: WarmPythons) -> Trained:
    """Two ranks of a schedule, forked from an interpreter that has imported torch."""
    environment = cpu_environment()
    command = (*torchrun(warm_pythons.python(NATIVE, environment).executable, 2), str(WORKER))
    return lambda schedule, mode: launched([*command, schedule, mode], environment, timeout_s=600)


@pytest.mark.parametrize("schedule", drawn([*FAILS, "Interleaved1F1B"], 2, kept=("Interleaved1F1B",)))
def test_every_schedule_runs_eagerly(schedule: str, trained: Trained) -> None:
    ran = trained(schedule, "eager")
    assert (ran.returncode, ran.stdout.count("trained")) == (0, 2), ran.stderr[-2000:]


def test_a_schedule_of_whole_backward_passes_runs_compiled(trained: Trained) -> None:
    ran = trained("Interleaved1F1B", "compiled")
    assert (ran.returncode, ran.stdout.count("trained")) == (0, 2), ran.stderr[-2000:]


@pytest.mark.parametrize("schedule", drawn(FAILS, 1))
def test_a_schedule_that_splits_them_does_not(schedule: str, trained: Trained) -> None:
    ran = trained(schedule, "compiled")
    assert ran.returncode != 0
    assert "Failed to run stage backward input" in ran.stderr
