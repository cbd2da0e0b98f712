"""Operator-level sharding on the public contest's instances: ``python -m benchmarks.operator_sharding``.

Per instance, under the same wall limit: ours (a fresh process each, reading included), plain CP-SAT and plain HiGHS on
the unreduced problem, beside the contest's best and winner and the best value known anywhere (``best_known.json``).
Writes ``benchmarks/results/DATE-operator-sharding.md``.  Options: ``--instances ABV --seconds 60 --no-baselines``.
CP-SAT runs beside it (OR-Tools).
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_facts
from benchmarks.plain_solvers import alone, plain_cp_sat, plain_highs

FOLDER = Path(__file__).parents[1].parent / "shared" / "iopddl"
RESULTS = Path(__file__).parent / "results"
SEEDS_OF_V = (0, 1, 2, 3)
SHORT_LIMITS = {"V": (3.0, 6.0), "D": (3.0, 6.0), "S": (8.0, 16.0)}
"""Limits that end a process in the middle of its work, wherever that is."""


def ours(path: Path, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Our answer by the command line, and the seconds that the whole process took."""
    words = ["shard", "--instance", str(path), "--time-limit", str(seconds), "--seed", str(seed), "-o", "json"]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "planner.cli.main", *words], capture_output=True, text=True, check=False
    )
    process_s = time.monotonic() - begin
    if done.returncode != 0:
        return {"status": f"exit {done.returncode}", "cost": None, "bound": None, "gap": None, "process_s": process_s}
    return {**json.loads(done.stdout), "process_s": process_s}


def late_by(instances: str) -> list[str]:
    """How long after its limit each answer came, and how long the process ran before and after the solve."""
    lines = []
    for name, limits in SHORT_LIMITS.items():
        for limit in limits if name in instances else ():
            answer = ours(FOLDER / f"asplos-2025-iopddl-{name}.json.gz", limit)
            line = f"{name} with --time-limit {limit:g}: {answer['status']}"
            if "wall_s" in answer:
                beside_s = answer["process_s"] - answer["wall_s"]
                line += f", {answer['wall_s'] - limit:+.2f} s after the limit, {beside_s:.2f} s of start-up and end"
            lines.append(line)
    return lines


def rows(instances: str, seconds: float, baselines: bool) -> tuple[list[str], list[float]]:
    """The table's lines, and our cost over the best known of each instance with an answer."""
    known = json.loads((FOLDER / "best_known.json").read_text())
    lines, ratios = [], []
    for name in instances:
        path = FOLDER / f"asplos-2025-iopddl-{name}.json.gz"
        answer, best = ours(path, seconds), known[name]
        others: list[tuple[str, int | None]] = [("not run", None)] * 2
        if baselines:
            others = [alone(solver, path, seconds) for solver in (plain_cp_sat, plain_highs)]
        ratio = answer["cost"] / best["best_known"] if answer["cost"] is not None else math.nan
        ratios.append(ratio)
        cells = [
            *(name, answer["status"], number(answer["cost"]), number(answer["bound"])),
            *("" if answer["gap"] is None else f"{answer['gap']:.4%}", f"{answer['process_s']:.1f}", f"{ratio:.4f}"),
            *(number(best["winner_team01"]), number(best["contest_best"]), number(best["best_known"])),
            *(f"{number(cost)} ({status})" for status, cost in others),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines, ratios


def machine_line() -> str:
    """Where this was measured."""
    facts = machine_facts(-1)
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load'][0]:.1f} at the end of the run"


def number(value: float | None) -> str:
    """With thousands, or a dash."""
    return "-" if value is None else f"{value:,.0f}"


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instances", default="ABDGKMPSV")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--no-baselines", action="store_true")
    asked = parser.parse_args()
    head = "instance | status | ours | bound | gap | process s | ours / best known | winner | contest best | best known"
    head += " | plain CP-SAT | plain HiGHS"
    lines, ratios = rows(asked.instances, asked.seconds, not asked.no_baselines)
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    text = [f"# Operator-level sharding, {asked.seconds:g} s wall", "", machine_line(), ""]
    text += [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *lines, ""]
    text.append(f"Geometric mean of cost / best known: {mean:.4f}")
    if "V" in asked.instances:
        answers = [ours(FOLDER / "asplos-2025-iopddl-V.json.gz", asked.seconds, seed) for seed in SEEDS_OF_V]
        said = [f"{number(answer['cost'])} {answer['status']} {answer['process_s']:.1f} s" for answer in answers]
        text.append("V by seed: " + ", ".join(said))
    late = late_by(asked.instances)
    text += ["", "Limits (less than 0: proved before; reading counts):", *late] if late else []
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    (RESULTS / f"{today}-operator-sharding.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text[-3 - len(late) :]))


if __name__ == "__main__":
    main()
