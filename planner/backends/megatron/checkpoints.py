"""How checkpoints are written: so that other degrees than those of the data parallelism can load them, where that fits.

Megatron-LM 0.19.2 saves a distributed optimizer's states as its own flat buffers, which only another data parallelism
can load (core/optimizer/distrib_optimizer.py:1472-1476, training/checkpointing.py:498-505).  ``RESHARDABLE`` gathers
them, bucket by bucket, into the shapes of the parameters on every rank: 12 bytes a parameter of its shard, in host
memory (distrib_optimizer.py:1317).
"""

from __future__ import annotations

from planner.backends.megatron.resume import RESHARDABLE
from planner.plan.plan import Plan
from planner.predict.memory.states import REDUCED

ADAM = frozenset({"adam", *REDUCED})
REASON = (
    "a checkpoint that other degrees than data parallelism can load; each save gathers a rank's states in host memory"
)
GATHERED_BYTES = 12.0
"""Of a parameter: its weight and both moments of Adam in fp32."""
MOST_OF_HOST = 0.5
"""Of a node's memory for a save; the rest is for data loaders, pinned buffers and what is offloaded."""


def checkpoint_flags(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The flag for Adam under ZeRO-1, where the nodes hold what their ranks gather; the other formats need none."""
    strategy, pool = plan.chosen(), plan.problem.cluster.pools[0]
    if strategy.zero_stage != 1 or plan.problem.workload.optimizer not in ADAM:
        return {}
    most = max(stage.parameters_per_device for stage in plan.stages)
    gathered = GATHERED_BYTES * most * pool.devices_per_node
    return {RESHARDABLE: ()} if gathered <= MOST_OF_HOST * pool.host.memory_bytes else {}
