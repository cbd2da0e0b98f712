"""Which memory a plan needs more of than there is: that of its devices, or that of its nodes."""

from __future__ import annotations

from planner.plan.plan import HostMemory, Plan, StagePlan

_GIB = 2**30


def missing(plan: Plan) -> tuple[str, ...]:
    """What a plan that does not fit misses, a phrase for each memory; empty where it fits, or breaks another limit."""
    over = plan.peak_memory_bytes - plan.memory_limit_bytes
    phrases = [f"the worst device misses {over / _GIB:.1f} GiB"] if over > 0 else []
    if (stage := fullest_host(plan)) is not None and (held := stage.host_memory_bytes) is not None and held.missing > 0:
        phrases.append(
            f"host memory misses {held.missing / _GIB:.1f} GiB a device: each of stage {stage.stage} keeps "
            f"{host_words(held)} there, and {held.limit / _GIB:.1f} GiB are its part of its node's"
        )
    return tuple(phrases)


def fullest_host(plan: Plan) -> StagePlan | None:
    """The stage whose devices keep the largest part of their share of host memory; None where none keeps anything."""
    kept = [(held.total / held.limit, stage) for stage in plan.stages if (held := stage.host_memory_bytes) is not None]
    return max(kept, key=lambda pair: pair[0])[1] if kept else None


def host_words(held: HostMemory) -> str:
    """``57.2 GiB (optimizer states 40.0, activations 17.2)``."""
    parts = (("optimizer states", held.optimizer), ("activations", held.activations))
    told = ", ".join(f"{name} {value / _GIB:.1f}" for name, value in parts if value)
    return f"{held.total / _GIB:.1f} GiB ({told})"
