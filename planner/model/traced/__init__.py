"""Models that no table describes, traced from the module that transformers builds of their config.

``model.py``     a config in, a ``ModelSpec`` out: asks the process below, with a limit
``worker.py``    that process: builds the module on the meta device and runs it at four lengths (torch, transformers)
``recording.py`` what runs: every operation with its shapes, parameters and the tensors that autograd keeps (torch)
``segments.py``  which operations belong to which layer, and which to the two ends
``grouping.py``  point-wise operations as one fused kernel would run them, what is kept between such groups
``fitting.py``   sizes at three lengths as ``a + b s + c s^2``, a fourth length as the check
"""

from __future__ import annotations

from planner.model.traced.model import how_to_trace, traced_model

__all__ = ["how_to_trace", "traced_model"]
