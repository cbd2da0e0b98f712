"""One parallel strategy: degrees and switches.

A ``Strategy`` says nothing about which layers sit on which stage (a ``Candidate`` does).  Axes follow the field:
tp, cp, ep, etp, pp, dp; ``dp = dp_replicate * dp_shard``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from planner.strategy.schedules import V_SCHEDULES, ScheduleName

RecomputePolicy = Literal["none", "selective", "full"]
CpKind = Literal["none", "ring", "all_to_all"]
AxisOrder = Literal["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]
Dispatcher = Literal["alltoall", "allgather", "deepep", "hybridep"]
DISPATCHERS: tuple[Dispatcher, ...] = get_args(Dispatcher)
RecomputeModule = Literal["attention_core", "norm", "activation", "mlp", "moe", "mla_up_proj"]
OPERATOR_MODULES: tuple[RecomputeModule, ...] = ("norm", "activation")
"""What checkpointing of single PyTorch operators is called: matmuls and attention stay, the rest runs again."""


@dataclass(frozen=True, slots=True)
class Relief:
    """A way to keep less: a recompute policy with its modules, or offload of kept tensors to the host."""

    recompute: RecomputePolicy = "none"
    modules: tuple[RecomputeModule, ...] = ()
    offload: bool = False


@dataclass(frozen=True, slots=True)
class Strategy:
    """Degrees and switches of one training configuration.

    ``world_size = tp * cp * pp * dp_replicate * dp_shard``; the experts live on a second grid over the same ranks,
    ``etp * ep * edp * pp``, with ``edp = tp * cp * dp / (etp * ep)``.

    ``zero_stage``: 0 plain data parallelism, 1 optimizer states sharded, 2 + gradients, 3 + parameters (FSDP).
    ZeRO shards over ``dp_shard * cp`` ranks; ``dp_replicate`` > 1 is HSDP.

    ``recompute`` names the policy; how many layers of each stage use it is decided per stage.
    """

    tp: int = 1
    sp: bool = False
    cp: int = 1
    cp_kind: CpKind = "none"
    ep: int = 1
    etp: int = 1
    pp: int = 1
    vpp: int = 1
    dp_replicate: int = 1
    dp_shard: int = 1
    micro_batch_size: int = 1
    num_microbatches: int = 1
    schedule: ScheduleName = "1f1b"
    microbatch_group_size: int = 0
    """``GROUPED_SCHEDULES`` only: micro-batches a virtual stage runs before the next; 0 = not interleaved."""
    zero_stage: int = 1
    recompute: RecomputePolicy = "none"
    recompute_modules: tuple[RecomputeModule, ...] = ()
    optimizer_offload: bool = False
    activation_offload: bool = False
    overlap_grad_reduce: bool = True
    overlap_param_gather: bool = True
    overlap_tp: bool = False
    overlap_ep: bool = False
    dispatcher: Dispatcher = "alltoall"
    """How routed tokens reach their experts; without expert parallelism (ep = 1) all are one."""
    fp8_parameters: bool = False
    """With precision fp8: weights of layers are stored and gathered in 8 bit, without 16-bit ones beside them."""
    axis_order: AxisOrder = "tp-cp-ep-dp-pp"

    @property
    def dp(self) -> int:
        """Data-parallel degree, replicate times shard (cp not included)."""
        return self.dp_replicate * self.dp_shard

    @property
    def world_size(self) -> int:
        """Devices used."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def edp(self) -> int:
        """Data-parallel degree of the experts."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @property
    def global_batch_size(self) -> int:
        """Samples a step."""
        return self.micro_batch_size * self.num_microbatches * self.dp

    @property
    def num_chunks(self) -> int:
        """Model chunks in the whole pipeline, pp * vpp."""
        return self.pp * self.vpp

    @property
    def order_sizes(self) -> tuple[int, int, int, int]:
        """What the order of a schedule depends on: stages, chunks a device, micro-batches, micro-batch group."""
        return self.pp, self.vpp, self.num_microbatches, self.microbatch_group_size

    def chunk_stage(self, chunk: int) -> int:
        """Pipeline rank that holds model chunk ``chunk`` (0 .. pp*vpp-1)."""
        if self.schedule in V_SCHEDULES:
            return chunk if chunk < self.pp else 2 * self.pp - 1 - chunk
        return chunk % self.pp

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, every field written out, plus the derived ``dp``."""
        data = asdict(self)
        data["recompute_modules"] = list(self.recompute_modules)
        data["dp"] = self.dp
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Strategy:
        """Inverse of ``to_dict``; ignores the derived ``dp``.  Raises KeyError on unknown fields."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known - {"dp"})
        if unknown:
            raise KeyError(", ".join(unknown))
        values = {key: value for key, value in data.items() if key in known}
        if "recompute_modules" in values:
            values["recompute_modules"] = tuple(values["recompute_modules"])
        return cls(**values)
