"""DeepSpeed's flops profiler: the summary of a step and the latency of every module, as text.

Recognised by the ruled line ``DeepSpeed Flops Profiler`` with ``fwd latency:`` or module lines behind it.  The summary
gives ``fwd``, ``bwd``, ``step`` and ``iter latency`` with their units; each module line ``(name): Class(`` carries
``.., 182.39 us, 0.24% latency, ..`` (older order) or ``.. = 182.39 us = 0.24% latency ..``.  A module is measured with
a synchronisation around it: its time is inflated, flag ``synchronised``.  One MAC is two FLOPs.  Modules are named by
their path; ``(...)`` without numbers was not printed by the tool.

Source: deepspeedai/DeepSpeed deepspeed/profiling/flops_profiler/profiler.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.number_cells import finite_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation, OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing

_BEGIN = re.compile(r"(?<!-)-{5,80} DeepSpeed Flops Profiler -{5}")
_STEP = re.compile(r"Profile Summary at step (\d{1,12})")
_SUMMARY = re.compile(r"\s*(fwd|bwd|step|iter) latency:\s+(\S+) ?(s|ms|us|\u00b5s|ns)\b")
_COUNT = re.compile(r"\s*(world size|data parallel size|model parallel size|batch size per GPU):\s+(\d{1,9})\s*$")
_MODULE = re.compile(r"(?P<indent>\s*)(?:\((?P<name>[\w.]{1,80})\): )?(?P<cls>[A-Za-z_]\w{0,80})\((?P<rest>.*)$")
_LATENCY = re.compile(r"(?<![\d.])([\d.]{1,20}(?:e[-+]?\d{1,3})?) ?(s|ms|us|\u00b5s|ns)(?:,| =) [\d.]{1,20}% latency")
_MACS = re.compile(r"(?<![\d.])([\d.]{1,20}) ?([KMGTP]?)MACs")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PHASES: dict[str, Phase] = {"fwd": "forward", "bwd": "backward", "step": "step"}
_CLASSES = (
    (r"LayerNorm$|RMSNorm$|BatchNorm\d?d?$", "norm"), (r"^Embedding$|VocabParallelEmbedding$", "embedding"),
    (r"Linear$|^LinearLayer$", "matmul"), (r"Softmax$", "softmax"), (r"^Dropout", "dropout"),
    (r"^Conv\dd$", "convolution"),
    (r"^(?:GELU|ReLU|SiLU|Tanh|GELUActivation|NewGELUActivation)$", "activation"),
)  # fmt: skip


@dataclass(slots=True)
class _Profile:
    """One printed profile."""

    line: int
    step: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    iteration: tuple[Timing, int] | None = None
    operators: list[OperatorObservation] = field(default_factory=list)
    path: list[tuple[int, str]] = field(default_factory=list)
    pending: tuple[str, str] | None = None


def _matches(head: Head) -> bool:
    begin = _BEGIN.search(head.text)
    if begin is None:
        return False
    rest = head.text[begin.end() :]
    return any(_SUMMARY.match(line) for line in rest.splitlines()) or bool(_LATENCY.search(rest))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("deepspeed-flops-profiler")
    batches = Batches()
    for file in files:
        profile: _Profile | None = None
        for line in log_lines(file):
            if _BEGIN.search(line.text):
                _store(profile, batches, options)
                profile = _Profile(line.number)
            elif profile is not None and len(line.text) < 20_000:
                try:
                    _take(line, profile)
                except ValueError as error:
                    imported.bad(line.number, str(error), "was the line cut off, or mixed with another process'?")
        _store(profile, batches, options)
    imported.flag(
        "synchronised", "the profiler synchronises around every module: small modules look slower than they are"
    )
    missing = "the profile holds no latency"
    return finished(imported, batches, files[0], missing, "check that the file holds the whole profile")


def _take(line: LogLine, profile: _Profile) -> None:
    """Read one line of a profile.  Raises ValueError."""
    text = line.text
    if match := _STEP.search(text):
        profile.step = int(match[1])
    elif match := _COUNT.match(text):
        profile.counts[match[1]] = int(match[2])
    elif match := _SUMMARY.match(text):
        timing = Timing(finite_number(match[2]) * _UNITS[match[3]], "single", 1)
        if match[1] == "iter":
            profile.iteration = (timing, line.number)
        else:
            profile.operators.append(
                OperatorObservation("module", "model", timing, phase=_PHASES[match[1]], row=line.number)
            )
    elif profile.pending is not None and "latency" in text and _LATENCY.search(text):
        _module(profile.pending, text, line.number, profile)
        profile.pending = None
    elif match := _MODULE.match(text):
        _enter(match, line.number, profile)


def _enter(match: re.Match[str], number: int, profile: _Profile) -> None:
    indent = len(match["indent"])
    while profile.path and profile.path[-1][0] >= indent:
        profile.path.pop()
    profile.path.append((indent, match["name"] or match["cls"]))
    name = ".".join(each for _, each in profile.path)[-200:]
    profile.pending = (name, match["cls"])
    if _LATENCY.search(match["rest"]):
        _module(profile.pending, match["rest"], number, profile)
        profile.pending = None
    elif match["rest"].startswith("..."):
        profile.pending = None


def _module(module: tuple[str, str], text: str, number: int, profile: _Profile) -> None:
    latency = _LATENCY.search(text)
    if latency is None:
        return
    time_s = finite_number(latency[1]) * _UNITS[latency[2]]
    if time_s == 0:
        return
    detail: dict[str, Scalar] = {"class": module[1]}
    if macs := _MACS.search(text):
        detail["flops"] = 2.0 * finite_number(macs[1]) * _SCALES[macs[2]]
    operator = next((kind for pattern, kind in _CLASSES if re.search(pattern, module[1])), "module")
    profile.operators.append(
        OperatorObservation(
            operator, module[0], Timing(time_s, "single", 1), phase="forward", detail=detail, row=number
        )
    )


def _store(profile: _Profile | None, batches: Batches, options: ReadOptions) -> None:
    if profile is None:
        return
    world = profile.counts.get("world size") or None
    batch: Batch = batches.of(environment_of(options, num_devices=world, framework="deepspeed"))
    batch.operators += profile.operators
    if profile.iteration is None:
        return
    timing, row = profile.iteration
    names = {"data parallel size": "dp", "model parallel size": "model_parallel"}
    strategy: dict[str, Scalar] = {key: profile.counts[name] for name, key in names.items() if name in profile.counts}
    batch.iterations.append(
        IterationObservation(
            timing,
            iteration=profile.step,
            model=options.given.get("model", ""),
            strategy=strategy,
            num_devices=world,
            micro_batch_size=profile.counts.get("batch size per GPU") or None,
            row=row,
        )
    )


FORMAT = Format("deepspeed-flops-profiler", "DeepSpeed flops profiler (text)", _matches, _read)
