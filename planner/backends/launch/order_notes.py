"""What order of the nodes is assumed, and how is it given?  The lines for ``PLAN.md``."""

from __future__ import annotations

from planner.backends.launch.spec import HOSTS_FILE, LaunchSpec


def order_note(spec: LaunchSpec, assumed: str) -> tuple[str, ...]:
    """``assumed``: what the launcher does by itself.  Nothing where the order makes no difference."""
    if spec.hosts:
        return (f"Node rank r runs on line r+1 of {HOSTS_FILE} (given with --hosts).",)
    if not spec.order_matters:
        return ()
    give = "Give the order with `meshwright emit ... --hosts FILE`: one host a line, or `scontrol show topology`."
    return (f"The order of the nodes counts: {spec.order_matters}.", f"Assumed: {assumed}.", give)
