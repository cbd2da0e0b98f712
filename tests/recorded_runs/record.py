"""Records the tiny runs of ``tests/samples/runs``: ``python -m tests.recorded_runs.record [NAME...]``.

Two gloo ranks of a CPU take eight steps, of which the last five are traced.  What is left out of the traces before they
are kept, because no reader here looks at it: flow arrows, operators inside another ``aten::`` operator, and arguments
but the sizes of what collectives send.  Times are as they were recorded.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.rank_launch import REPOSITORY, cpu_environment, launched, torchrun

RUNS = {
    "experts-clean": ("experts", "clean"),
    "experts-slow-rank": ("experts", "slow_rank"),
    "experts-uneven": ("experts", "uneven_experts"),
    "replicas-clean": ("replicas", "clean"),
    "replicas-no-overlap": ("replicas", "no_overlap"),
}
FOLDER = REPOSITORY / "tests" / "samples" / "runs"
SLOW = "1=1.6"
"""Rank 1 takes 1.6 times as long for its chunk."""
KEPT_ARGUMENTS = ("External id", "Input Dims", "Input type")


def record(name: str) -> None:
    """Run once and keep the traces of both ranks."""
    kind, fault = RUNS[name]
    with tempfile.TemporaryDirectory() as folder:
        command = (*torchrun(sys.executable, 2), "-m", "tests.recorded_runs.worker", kind, fault, folder)
        environment = cpu_environment(SLOW_RANKS=SLOW if fault == "slow_rank" else "")
        done = launched(command, environment, cwd=REPOSITORY, timeout_s=300.0)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        for path in sorted(Path(folder).glob("rank*.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            document["traceEvents"] = _trimmed(document["traceEvents"])
            document["host_name"] = document["traceName"] = ""
            kept = FOLDER / name / f"{path.name}.gz"
            kept.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(document, separators=(",", ":")).encode()
            kept.write_bytes(gzip.compress(text, 9, mtime=0))
            print(kept.relative_to(REPOSITORY), f"{kept.stat().st_size:,} bytes")


def _trimmed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps, collectives, the optimizer, and the outermost ``aten::`` operators of each thread."""
    kept: list[dict[str, Any]] = []
    inside_until: dict[Any, float] = {}
    wanted = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation") and "dur" in event]
    for event in sorted(wanted, key=lambda each: (each["ts"], -each["dur"])):
        if event["cat"] == "user_annotation":
            kept.append(_without_arguments(event))
        elif event["name"].startswith("aten::") and event["ts"] >= inside_until.get(event["tid"], 0.0):
            inside_until[event["tid"]] = event["ts"] + event["dur"]
            kept.append(_without_arguments(event))
    return kept


def _without_arguments(event: dict[str, Any]) -> dict[str, Any]:
    names = KEPT_ARGUMENTS if event["name"].startswith("gloo:") else KEPT_ARGUMENTS[:1]
    arguments = {name: event["args"][name] for name in names if name in event.get("args", {})}
    times = {name: round(event[name], 3) for name in ("ts", "dur")}
    return {**{name: event[name] for name in ("ph", "cat", "name", "pid", "tid")}, **times, "args": arguments}


if __name__ == "__main__":
    for each in sys.argv[1:] or RUNS:
        record(each)
