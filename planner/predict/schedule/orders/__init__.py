"""Pipeline orders; ``build_order`` is the door, ``kernels`` has every schedule."""

from __future__ import annotations

from planner.predict.schedule.orders.build import build_order
from planner.predict.schedule.orders.legality import check_order_inputs, order_findings

__all__ = ["build_order", "check_order_inputs", "order_findings"]
