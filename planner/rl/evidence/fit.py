"""Fit the factors of RL's software to measured steps: ``python -m planner.rl.evidence.fit rl_dev.csv``.

Three numbers (``planner.rl.predict.software``) to whole steps of one source, NeMo-RL v0.4's page, by the least mean
|ln(predicted / measured)| over a grid; every other source is judged, NeMo-RL v0.5's among them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from planner.rl.evidence.judge import FITTED_ON, JudgedStep, judged
from planner.rl.evidence.measured import read_measured
from planner.rl.predict.engine import served_engine
from planner.rl.predict.software import SoftwareFactors, fitted_factors

_FACTORS = tuple(0.7 + 0.05 * number for number in range(57))
_WAYS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def fitted(steps: Iterable[JudgedStep]) -> SoftwareFactors:
    """The factors with the least error over these steps, which were predicted with the factors of this release."""
    parts = [_parts(each) for each in steps if each.ratio is not None]
    best = min(product(_FACTORS, _FACTORS, _WAYS), key=lambda factors: _error(parts, factors))
    return SoftwareFactors(*(round(each, 2) for each in best))


def _parts(step: JudgedStep) -> tuple[float, float, float, float, bool, float]:
    """Generation, trainer, weights and the rest without factors; whether they follow one another; measured step."""
    assert step.predicted is not None
    now, stages = fitted_factors(), step.predicted.stages_s
    trained = sum(stages.get(name, 0.0) for name in ("old_log_prob", "reference_log_prob", "actor_update"))
    way, rest = stages["weight_sync"], stages.get("switch", 0.0)
    together = step.run.synchrony == "synchronous"
    return stages["rollout"] / now.rollout, trained / now.trainer, way / now.way, rest, together, step.run.step_s or 1.0


def _error(parts: Sequence[tuple[float, float, float, float, bool, float]], factors: tuple[float, ...]) -> float:
    total = 0.0
    for generated, trained, way, rest, together, measured in parts:
        one, two = factors[0] * generated, factors[1] * trained
        predicted = (one + two if together else max(one, two)) + factors[2] * way + rest
        total += abs(math.log(predicted / measured))
    return total


def main() -> None:
    """Fit, and write ``planner/rl/predict/fitted.toml``."""
    runs = [run for path in sys.argv[1:] for run in read_measured(Path(path).read_text("utf-8"), path)]
    chosen = [run for run in runs if run.id.startswith(FITTED_ON)]
    found = fitted(judged(chosen, served_engine))
    path = Path(__file__).parents[1] / "predict" / "fitted.toml"
    head = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    lines = [f"rollout = {found.rollout}", f"trainer = {found.trainer}", f"way = {found.way}"]
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    sys.stdout.write(f"fitted to {len(chosen)} runs: {', '.join(lines)}\n")


if __name__ == "__main__":
    main()
