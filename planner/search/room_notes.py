"""How much memory a plan may be predicted to need, in words."""

from __future__ import annotations

from planner.backends.backend import Software
from planner.predict.memory.fit_chance import POOLED, memory_ratio, ratio_name
from planner.question.problem import Constraints


def room_notes(constraints: Constraints, software: Software) -> tuple[str, ...]:
    """Assumptions about memory: the chance that is asked and whose runs it is from, and a given margin."""
    notes = []
    if constraints.fits is not None:
        notes.append(
            f"the fullest device holds its predicted peak with a chance of {constraints.fits:.4g} or more;"
            f" {whose_runs(software)}"
        )
    if constraints.memory_margin_fraction is not None:
        notes.append(
            f"{constraints.memory_margin_fraction:.0%} of device memory stays free for fragmentation and surprises"
        )
    return tuple(notes)


def room_words(constraints: Constraints) -> str:
    """``less what a chance of 0.95 to fit takes``, ``less 6% margin``, or both."""
    parts = []
    if constraints.fits is not None:
        parts.append(f"what a chance of {constraints.fits:.4g} to fit takes")
    if constraints.memory_margin_fraction is not None:
        parts.append(f"{constraints.memory_margin_fraction:.0%} margin")
    return "less " + " or ".join(parts)


def whose_runs(software: Software) -> str:
    """What measured runs say of predicted memory, and of which back-end they were."""
    ratio, name = memory_ratio(software.name), ratio_name(software.name)
    figures = f"measured over predicted memory: median {ratio.median:.3g}, 95 % below {ratio.quantile(0.95):.3g}"
    if name == POOLED:
        return f"{figures} (no measured runs of {software.backend.title}: what other back-ends' runs say of it)"
    rows = ratio.exact + ratio.finished + ratio.out_of_memory
    sources = "one publication" if ratio.sources == 1 else f"{ratio.sources} publications"
    return f"{figures} ({rows:,} runs of {name}, {sources})"
