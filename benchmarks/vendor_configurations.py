"""Vendors' own configurations beside ours, one question each: ``python -m benchmarks.vendor_configurations MIRRORS``.

Every case names a recipe or job file of a pinned release.  It is read by ``meshwright estimate --from``, as a user's
file is, and ``meshwright plan --from`` answers the same question (model, devices, batch, precision) for the same
back-end, so that both times come from one physics.  ``measured``: what the vendor publishes of that configuration.
Prints a row of Markdown a case, and below it what differs and which parts of the step.  ``MIRRORS``: a folder of bare
repositories, each as ``owner+name/repo``; texts of others are read from there and are no part of this repository.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.launch_scripts import command, git

BRIDGE, TITAN, MAXTEXT = "Megatron-Bridge 0.6.2", "torchtitan 0.2.2", "MaxText 0.2.5"
LLAMA = "torchtitan/models/llama3/train_configs/llama3_"
MAXTEXT_JOBS = "src/frameworks/a3ultra/maxtext-configs/llama3-1-"
ALIKE = 0.01
"""Parts of the step, relative to it, that differ by less are not listed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration that a vendor publishes, and what it measured with it (tokens per second and device)."""

    title: str
    software: str
    file: str
    text: str = ""
    origin: tuple[str, str, str] | None = None
    """Repository, revision and path of the text."""
    options: tuple[str, ...] = ()
    """Of both commands."""
    arguments: tuple[str, ...] = ()
    """Of the job, behind ``--``."""
    cluster: str = "dgx-h100"
    devices: int | None = None
    measured: float | None = None
    source: str = ""


def bridge(model: str, size: str, devices: int, precision: str, measured: float | None, source: str = "") -> Case:
    """A performance recipe of Megatron-Bridge for H100, started as its README says.

    Its performance page says of mixtures that each expert gets as many tokens.
    """
    words = f"-m {model} -mr {size} -ng {devices} -g h100 -c {precision}"
    text = f"python scripts/performance/setup_experiment.py {words}\n"
    even = () if model == "llama" else ("--routing", "even")
    title, source = f"{size} {precision}, {devices} H100", f"container {source}"
    return Case(title, BRIDGE, "launch.sh", text, options=even, measured=measured, source=source)


def titan(size: str, devices: int, more: tuple[str, ...], measured: float) -> Case:
    """A job file of torchtitan with the options that its benchmark page names."""
    origin = ("pytorch/torchtitan", "v0.2.2", f"{LLAMA}{size}.toml")
    title, source = f"llama3 {size}, {devices} H100", "torchtitan's page of 2024-12"
    options = ("--backend", "torchtitan==0.3.0")
    return Case(title, TITAN, "job.toml", "", origin, options, more, devices=devices, measured=measured, source=source)


CASES = (
    bridge("llama", "llama3_8b", 8, "fp8_cs", 14451, "25.11"),
    bridge("llama", "llama3_70b", 64, "fp8_cs", 1664, "26.04.01"),
    bridge("llama", "llama31_405b", 1024, "fp8_cs", 326, "26.06"),
    bridge("gpt_oss", "gpt_oss_120b", 64, "bf16", 5824, "26.04.01"),
    bridge("qwen", "qwen3_30b_a3b", 16, "fp8_cs", 8826, "26.06"),
    bridge("qwen", "qwen3_235b_a22b", 256, "fp8_cs", 1712, "26.04.01"),
    bridge("deepseek", "deepseek_v3", 1024, "fp8_sc", 1297, "25.09, batch 8,192"),
    titan("8b", 8, ("--training.local_batch_size", "2", "--compile.enable"), 6667),
    titan("70b", 256, ("--training.local_batch_size", "16", "--compile.enable", "--model.converters", "float8"), 829),
    titan(
        "405b",
        512,
        (
            "--training.local_batch_size", "32", "--parallelism.pipeline_parallel_degree", "8",
            "--parallelism.pipeline_parallel_schedule", "Interleaved1F1B",
        ),
        128,
    ),
    Case(
        "llama3.1-70b bf16, 256 H200", MAXTEXT, "job.yaml", "",
        ("AI-Hypercomputer/gpu-recipes", "HEAD", f"{MAXTEXT_JOBS}70b-256gpus-a3u-bf16.yaml"),
        cluster="dgx-h200", devices=256, measured=1056, source="README of the recipe",
    ),
)  # fmt: skip


def main() -> int:
    """Print a row and its differences a case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vendor_configurations")
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--only", default="", help="cases whose title has this text")
    parser.add_argument("--time-limit", default="60", help="seconds of each search")
    options = parser.parse_args()
    for case in CASES:
        if options.only in case.title:
            sys.stdout.write(compared(case, options.mirrors, options.time_limit) + "\n")
            sys.stdout.flush()
    return 0


def compared(case: Case, mirrors: Path, time_limit: str) -> str:
    """The row of a case and what differs; the reason where one of the two gives no answer."""
    text = case.text
    if case.origin is not None:
        repository, revision, path = case.origin
        found = git(mirrors / repository.replace("/", "+") / "repo", "show", f"{revision}:{path}")
        if found is None:
            return f"| {case.title} | the text is not there: {repository} {revision} {path} |"
        text = found
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / case.file
        file.write_text(text, encoding="utf-8")
        words = ["--from", str(file), "--cluster", case.cluster, "-o", "json", "--quiet"]
        words += [*case.options, *([] if case.devices is None else ["--devices", str(case.devices)])]
        words += ["--", *case.arguments] if case.arguments else []
        theirs = command(["estimate", *words])
        ours = command(["plan", "--time-limit", time_limit, *words])
    for name, answer in (("estimate", theirs), ("plan", ours)):
        if "step_time_s" not in answer:
            return f"| {case.title} | {name}: {answer['error']['what']} |"
    return "\n".join([row(case, theirs, ours), *differences(theirs, ours)])


def row(case: Case, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Question; theirs and ours with time and memory; measured seconds of theirs."""
    measured = ""
    if case.measured:
        seconds = theirs["step_time_s"] * theirs["tokens_per_s_per_device"] / case.measured
        measured = f"{seconds:.4g} s ({case.source})"
    cells = [case.title, said(theirs), measured, said(ours)]
    return f"| {' | '.join(cells)} |"


def said(answer: Mapping[str, Any]) -> str:
    """Time, memory and, where it is so, that it does not fit or is not proved."""
    size = f"{answer['peak_memory_bytes'] / 2**30:.1f} GiB"
    more = "" if answer["status"] != "infeasible" else f", fits with {answer['fits_probability']:.0%}"
    more += f", gap {answer['gap']:.0%}" if answer.get("gap") else ""
    return f"{answer['step_time_s']:.2f} s, {size}{more}"


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Fields of the strategies and parts of the step that differ, theirs before ours."""
    fields = [
        f"{name} {value} -> {ours['strategy'].get(name)}"
        for name, value in theirs["strategy"].items()
        if value != ours["strategy"].get(name)
    ]
    parts = {**theirs["breakdown_s"], **ours["breakdown_s"]}
    seconds = [
        f"{name} {theirs['breakdown_s'].get(name, 0.0):.2f} -> {ours['breakdown_s'].get(name, 0.0):.2f} s"
        for name in parts
        if abs(theirs["breakdown_s"].get(name, 0.0) - ours["breakdown_s"].get(name, 0.0))
        > ALIKE * theirs["step_time_s"]
    ]
    return [f"    fields: {', '.join(fields)}", f"    seconds: {', '.join(seconds)}"]


if __name__ == "__main__":
    raise SystemExit(main())
