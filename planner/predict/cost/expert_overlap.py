"""What stays visible of the exchanges of routed tokens where they run beside another micro-batch's compute.

Overlap of experts' exchanges (``overlap_ep``) runs one micro-batch's forward pass through a layer together with
another's backward pass, each exchange beside its own piece of compute (NVIDIA/Megatron-LM@d98e8a64d,
core/models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run)::

    exchange              combine backward  | dispatch forward, dispatch backward | combine forward
    compute               attention forward | experts backward and forward        | attention backward

Attention stands for all that precedes the dispatch.  Its weight gradients follow its input gradients, while the next
layer's combine backward runs: they are counted to the first piece.  Each piece hides what
``planner.predict.cost.overlap`` says.  Shape letter: K keys.
"""

from __future__ import annotations

import numpy as np

from planner.model.operator import Operator
from planner.predict.cost.overlap import exposed_s
from solver.arrays import Array

EXCHANGES = 4.0
"""Dispatch and combine, forward and backward: of one size."""


class Windows:
    """Compute seconds of one layer beside which its exchanges run, by piece: [K] each."""

    def __init__(self, count: int) -> None:
        self.first_s = np.zeros(count)
        self.experts_s = np.zeros(count)
        self.last_s = np.zeros(count)

    def add(self, operator: Operator, forward_s: Array, input_gradient_s: Array, weight_gradient_s: Array) -> None:
        """Count one operator to its piece."""
        if operator.module in ("moe", "shared_expert") and operator.op_class != "router":
            self.experts_s = self.experts_s + forward_s + input_gradient_s + weight_gradient_s
            return
        self.first_s = self.first_s + forward_s + weight_gradient_s
        self.last_s = self.last_s + input_gradient_s

    def exposed_s(self, exchanges_s: Array, slowdown: Array) -> Array:
        """Seconds that all exchanges of the layer add, where they last ``exchanges_s`` alone: [K]."""
        one_s = exchanges_s / EXCHANGES
        pieces = ((one_s, self.first_s), (2.0 * one_s, self.experts_s), (one_s, self.last_s))
        return sum(
            (exposed_s(sent_s, window_s, slowdown=slowdown) for sent_s, window_s in pieces),
            start=np.zeros(np.shape(exchanges_s)),
        )
