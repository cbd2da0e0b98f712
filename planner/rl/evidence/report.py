"""The judgement of measured steps as a document, and as a section of the accuracy page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pydantic import Field

from planner.rl.evidence.judge import FITTED_ON, JudgedStep, Verdict, fitted, verdict
from profiles.document import Document


class SourceLine(Document):
    """One source, or all that were judged."""

    source: str
    runs: int = Field(description="runs that could be asked")
    timed: int = Field(description="... of which lengths, device and layout are stated")
    median_error: float | None = Field(description="of step times, |predicted / measured - 1|")
    median_ratio: float | None
    pairs: int = Field(description="pairs of one group whose measured steps differ by more than 5 %")
    pairs_right: int = Field(description="... that the predictions put in the same order")
    fitted: bool = Field(description="whether the factors of RL's software were fitted to it")


class RlAccuracy(Document):
    """How far predicted steps are from measured ones."""

    judged: SourceLine
    fit: SourceLine
    sources: tuple[SourceLine, ...]
    left_out: dict[str, int] = Field(description="runs that could not be asked, by reason")


def rl_accuracy(steps: Sequence[JudgedStep]) -> RlAccuracy:
    """The document."""
    by_source: dict[str, list[JudgedStep]] = defaultdict(list)
    for each in steps:
        by_source[each.run.source].append(each)
    lines = [_line(name, part) for name, part in sorted(by_source.items())]
    return RlAccuracy(
        judged=_line("all that were judged", [each for each in steps if not fitted(each.run)]),
        fit=_line(f"{FITTED_ON}: what factors were fitted to", [each for each in steps if fitted(each.run)]),
        sources=tuple(line for line in lines if line.runs),
        left_out=dict(Counter(each.reason for each in steps if each.ratio is None)),
    )


def _line(name: str, steps: Sequence[JudgedStep]) -> SourceLine:
    found: Verdict = verdict(steps)
    return SourceLine(
        source=name,
        runs=found.runs,
        timed=found.timed,
        median_error=found.median_error,
        median_ratio=found.median_ratio,
        pairs=found.pairs,
        pairs_right=found.pairs_right,
        fitted=any(fitted(each.run) for each in steps),
    )


def markdown(found: RlAccuracy) -> Iterator[str]:
    """Lines of the page."""
    yield "# Accuracy of RL steps"
    yield ""
    yield (
        "Written by `meshwright rl accuracy FILES --markdown`. Published steps of RL post-training against"
        " predictions. Order first: pairs of runs of one group whose measured steps differ by more than 5 %. Times only"
        " where a source states mean lengths, device and layout. Three factors of RL's software were fitted to one"
        " source, whole; everything else is judged. Where a group states no mean response, it is inferred from its"
        " colocated run's update, and only the order is judged."
    )
    yield ""
    yield "| source | runs | times judged | median error | median ratio | pairs in order |"
    yield "|---|--:|--:|--:|--:|--:|"
    for line in (found.judged, found.fit, *found.sources):
        error = "" if line.median_error is None else f"{line.median_error:.1%}"
        ratio = "" if line.median_ratio is None else f"{line.median_ratio:.2f}"
        pairs = f"{line.pairs_right} of {line.pairs}" if line.pairs else ""
        name = f"**{line.source}**" if line in (found.judged, found.fit) else f"`{line.source}`"
        yield f"| {name} | {line.runs} | {line.timed} | {error} | {ratio} | {pairs} |"
    yield ""
    yield "Runs that could not be asked:"
    yield ""
    yield "| runs | why |"
    yield "|--:|---|"
    for reason, count in sorted(found.left_out.items(), key=lambda item: -item[1]):
        yield f"| {count} | {reason} |"
    yield ""
