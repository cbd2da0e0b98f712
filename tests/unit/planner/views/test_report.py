"""The report is one whole, harmless page, and says what the plan says."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

from planner.answers.views.report.page import report_page
from planner.answers.views.words import gib, seconds
from planner.backends.asked import inside
from planner.backends.registry import software
from planner.model.load import load_model
from planner.question.problem import Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model, make_plan

VOID = frozenset({"meta", "rect", "line"})


class _Page(HTMLParser):
    """Tags that are open, every tag with its attributes, and the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


PIPELINE = Strategy(tp=2, sp=True, pp=4, num_microbatches=8)


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    text = report_page(make_plan(PIPELINE))
    page = _Page(text)
    assert page.open == []
    assert {"script", "link", "img", "iframe"}.isdisjoint({tag for tag, _ in page.tags})
    assert not [name for _, given in page.tags for name in given if name in {"href", "src"} or name.startswith("on")]
    assert "url(" not in text
    drawings = [given for tag, given in page.tags if tag == "svg" and "aria-hidden" not in given]
    assert len(drawings) == 3
    assert all(given["role"] == "img" and given["aria-label"] for given in drawings)


def test_the_page_says_the_plans_numbers() -> None:
    plan = make_plan(PIPELINE)
    words = _Page(report_page(plan)).words
    assert seconds(plan.step_time_s) in words
    assert gib(plan.peak_memory_bytes) in words
    assert plan.plan_id in words
    for assumption in plan.assumptions:
        assert assumption in words


def test_names_cannot_bring_markup_along() -> None:
    name = "<script>alert(1)</script>"
    text = report_page(make_plan(model=make_model().model_copy(update={"name": name})))
    assert "<script" not in text
    assert name in _Page(text).words


def test_without_a_pipeline_there_is_none_to_draw() -> None:
    assert "Pipeline</h2>" not in report_page(make_plan(Strategy(dp_shard=8)))


def test_every_back_end_that_was_asked_has_a_row_with_its_numbers_or_its_reason() -> None:
    problem = Problem(
        model=load_model("llama-3.2-1b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=16, sequence_length=2048),
    )
    plan = find_plan(problem, SearchOptions(top_k=0))
    page = report_page(plan)
    assert f"<dd>{plan.backend} {plan.release}</dd>" in page
    assert f"--backend {plan.backend} " in page
    table = page.partition("<h2>Back-ends</h2>")[2].partition("</table>")[0]
    assert table.count("<tr>") == 1 + len(plan.backends)
    for row in plan.backends:
        assert f"{row.backend} {row.release}" in table
        assert seconds(row.step_time_s) in table if row.step_time_s is not None else escape(row.reason or "?") in table
    alone = find_plan(inside(problem, software("megatron")), SearchOptions(top_k=0))
    assert "<h2>Back-ends</h2>" not in report_page(alone)
