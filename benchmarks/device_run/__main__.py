"""Runs the parts of a device run one after the other, each in a process of its own with a time limit.

    python -m benchmarks.device_run --out DIR [--seconds 440] [--plans DIR] [--only PART,...] [--tiny]

``DIR`` gets ``environment.json``, ``steps.jsonl``, ``training_runs.csv``, one measured profile a part
(``experts.json``, ``operators.json``, ``fp8.json``) and ``log.txt``.  A part that fails or hangs loses only itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.device_run.truth_rows import read_lines, write_truth

PLAIN = "matmul,attention,norm,activation,embedding,cross_entropy,optimizer,copy"
START_S = 8.0
"""An interpreter that imports torch and opens the device."""
GRACE_S = 15.0
FEWEST_S = 12.0


@dataclass(frozen=True, slots=True)
class Part:
    """``measure``: flags of ``meshwright profile measure``; else a module of this package run by ``part``."""

    name: str
    seconds: float
    measure: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


PARTS: tuple[Part, ...] = (
    Part("experts", 90, ("--only", "grouped_matmul,router,permute", "--dtype", "bf16,fp8")),
    Part("hugging_face", 115),
    Part("operators", 70, ("--only", PLAIN, "--dtype", "bf16")),
    Part("launches", 28),
    Part("native", 28),
    Part("zero_steps", 28),
    Part("fp8", 25, ("--only", "matmul", "--dtype", "fp8")),
    Part("megatron_core", 25),
    Part("expandable", 22, (), (("PYTORCH_ALLOC_CONF", "expandable_segments:True"),)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts; 0 even where parts failed: their errors are part of the result."""
    options = _arguments(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    ends_at_s = time.monotonic() + options.seconds
    wanted = [part for part in PARTS if not options.only or part.name in options.only.split(",")]
    with tempfile.TemporaryDirectory() as work:
        _environment(options)
        for part in wanted:
            _run(part, options, ends_at_s, Path(work))
        # What is left goes to the grid of plain operators: finished cases are in its journal.
        last = next((part for part in wanted if part.name == "operators"), None)
        if last is not None and not options.tiny and ends_at_s - time.monotonic() > 2 * FEWEST_S:
            _run(replace(last, seconds=ends_at_s - time.monotonic()), options, ends_at_s, Path(work))
    _table(options)
    return 0


def _environment(options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "benchmarks.device_run.environment", str(options.out / "environment.json")]
    subprocess.run([*command, "cpu" if options.tiny else "cuda"], timeout=60, check=False)


def _run(part: Part, options: argparse.Namespace, ends_at_s: float, work: Path) -> None:
    seconds = min(part.seconds, ends_at_s - time.monotonic())
    if seconds < FEWEST_S:
        _log(options.out, f"{part.name}: no time was left")
        return
    target, journal = options.out / f"{part.name}.json", work / f"{part.name}.journal"
    began_s = time.monotonic()
    command = _measure(part, options, seconds, target, journal) if part.measure else _steps(part, options, seconds)
    how = _limited(command, seconds + GRACE_S, options.out, dict(part.environment))
    if part.measure and not target.exists() and journal.exists():
        shutil.copy(journal, options.out / journal.name)
    _log(options.out, f"{part.name}: {how} after {time.monotonic() - began_s:.1f} s")


def _measure(part: Part, options: argparse.Namespace, seconds: float, target: Path, journal: Path) -> list[str]:
    grid = ("--grid", "small", "--backend", "cpu") if options.tiny else ("--grid", "full")
    command = [sys.executable, "-m", "planner.cli.main", "profile", "measure", *part.measure, *grid]
    command += ["--time-budget", f"{max(seconds - START_S, 4):.1f}", "--journal", str(journal), "--out", str(target)]
    return [*command, "--quiet"]


def _steps(part: Part, options: argparse.Namespace, seconds: float) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.device_run.part", part.name, str(options.out / "steps.jsonl")]
    command += ["--seconds", f"{seconds:.1f}"]
    command += ["--plans", str(options.plans)] if options.plans else []
    return [*command, "--tiny"] if options.tiny else command


def _limited(command: list[str], limit_s: float, out: Path, environment: dict[str, str]) -> str:
    """How a process ended; at its limit, it and what it started are killed."""
    said = {**os.environ, "PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    with (out / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=said | environment, start_new_session=True)
        try:
            return f"exit code {process.wait(limit_s)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "killed at its time limit"


def _log(out: Path, line: str) -> None:
    print(line, flush=True)
    with (out / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"== {line}\n")


def _table(options: argparse.Namespace) -> None:
    """The truth file, and a short table."""
    from benchmarks.device_run.records import short_line

    environment = json.loads((options.out / "environment.json").read_text(encoding="utf-8"))
    device = str(environment.get("device", ""))
    lines = options.out / "steps.jsonl"
    count = write_truth(lines, options.out / "training_runs.csv", device, f"meshwright device run on one {device}")
    for row in read_lines(lines):
        print(short_line(row)[:150])
    for part in PARTS:
        if part.measure and (path := options.out / f"{part.name}.json").exists():
            facts = json.loads(path.read_text(encoding="utf-8"))["facts"]
            print(f"{part.name}: {facts['num_cases']} cases known, {facts['num_failed']} failed, {facts['wall_s']} s")
    print(f"{device}: {count} training steps measured")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_run", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=440.0, help="for everything; nothing begins after it")
    parser.add_argument("--plans", type=Path, help="plans of the native back-end (emit_plans)")
    parser.add_argument("--only", help="names of parts, separated by commas")
    parser.add_argument("--tiny", action="store_true", help="small cases that a CPU runs in a minute")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
