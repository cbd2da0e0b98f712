"""How a notebook shows a plan: its report page, in a frame of its own so that no style leaks."""

from __future__ import annotations

import sys
from html import escape

from planner.plan.plan import Plan

HEIGHT_PX = 640


def show_plans() -> None:
    """Tell the notebook that runs this interpreter, if one does, how plans look."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(Plan, plan_html)


def plan_html(plan: Plan) -> str:
    """The report of a plan, as one element."""
    from planner.answers.views.report.page import report_page

    page = escape(report_page(plan), quote=True)
    return f'<iframe title="Meshwright plan" srcdoc="{page}" style="width:100%;height:{HEIGHT_PX}px;border:0"></iframe>'
