"""MaxText's own trainer on CPU devices: a small form gives the losses of one device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.backends.folders.tiny_run import TinyOptions, tiny_run
from planner.backends.maxtext.tiny_run import INTERPRETER_VARIABLE
from planner.errors import NotFound
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan

FULLY_SHARDED = Strategy(
    dp_shard=2,
    micro_batch_size=2,
    num_microbatches=2,
    zero_stage=3,
    recompute="full",
    overlap_grad_reduce=True,
    overlap_param_gather=True,
)


def plan() -> Plan:
    return make_plan(FULLY_SHARDED, backend="maxtext", cluster=make_cluster(2))


@pytest.mark.skipif(not os.environ.get(INTERPRETER_VARIABLE), reason=f"{INTERPRETER_VARIABLE} names no MaxText")
def test_sharded_devices_train_as_one(tmp_path: Path) -> None:
    done = tiny_run(plan(), TinyOptions(steps=2, keep=tmp_path / "run"))
    assert done.parity
    assert done.steps[0].loss != done.steps[1].loss


def test_without_maxtext_it_says_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER_VARIABLE, raising=False)
    with pytest.raises(NotFound, match="no Python with MaxText") as caught:
        tiny_run(plan(), TinyOptions(keep=tmp_path / "run"))
    assert "pip install --no-deps maxtext==0.2.5" in (caught.value.hint or "")
