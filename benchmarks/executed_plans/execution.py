"""Executes the small form of one plan as ``meshwright run --tiny`` does, and says what came of it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.executed_plans.record import exercised
from benchmarks.executed_plans.values import plan_values, strategy_words
from planner.backends.folders.shrink import shrink
from planner.backends.folders.tiny_run import TinyOptions, runner, tiny_run, worst
from planner.errors import BackEndRefused, DocumentInvalid
from planner.plan.plan import Plan

STEPS = 2
MOST_RANKS = (4, 8)
"""Few where the axes allow: two cores run all of them."""
TIMEOUT_S = 420.0
_WORDS = 500


def executed(name: str, plan: Plan, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """The row of one plan: what ran, in how many ranks, its losses beside those of one rank; or why it did not.

    Verdicts: ``ran``, ``differs`` (it trains, with other losses than one rank), ``refused`` (by a rule, before anything
    was started), ``failed`` (it was started and ended badly).
    """
    begin = time.monotonic()
    row: dict[str, Any] = {"id": name, "plan": strategy_words(plan.chosen())}
    made = runner(plan.backend)[1]
    try:
        small, most = _small(plan, context_parallelism=not made.without_context_parallelism)
    except (BackEndRefused, DocumentInvalid) as error:
        return row | {"verdict": "refused", "why": _told(error), "values": {}}
    chosen = small.chosen()
    row |= {"executed": strategy_words(chosen), "ranks": chosen.world_size}
    row["values"] = exercised(plan.backend, plan_values(small))
    folder = Path(tempfile.mkdtemp(prefix="executed-"))
    try:
        options = TinyOptions(steps=STEPS, max_ranks=most, timeout_s=timeout_s, keep=folder / "run")
        done = tiny_run(plan, options)
    except (BackEndRefused, DocumentInvalid) as error:
        started = any((folder / "run").rglob("ranks.log"))
        row |= {"verdict": "failed" if started else "refused", "why": _told(error)}
    else:
        row |= {
            "verdict": "ran" if done.parity else "differs",
            "losses": [round(step.loss, 6) for step in done.steps],
            "one_rank": [round(step.reference_loss, 6) for step in done.steps],
            "difference": float(f"{worst(done.steps):.1e}"),
        }
    finally:
        if row.get("verdict") not in ("failed", "differs"):
            shutil.rmtree(folder, ignore_errors=True)
    return row | {"seconds": round(time.monotonic() - begin, 1)}


def _small(plan: Plan, *, context_parallelism: bool) -> tuple[Plan, int]:
    """The small form, and within how many ranks.  Raises BackEndRefused, DocumentInvalid."""
    for most in MOST_RANKS[:-1]:
        with contextlib.suppress(BackEndRefused, DocumentInvalid):
            return shrink(plan, most, context_parallelism=context_parallelism).plan, most
    return shrink(plan, MOST_RANKS[-1], context_parallelism=context_parallelism).plan, MOST_RANKS[-1]


def _told(error: Exception) -> str:
    return " ".join(str(getattr(error, "what", error)).split())[:_WORDS]
