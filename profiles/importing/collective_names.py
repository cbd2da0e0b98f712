"""One name for each collective: ``AllReduce``, ``all_gather_perf``, ``hcclReduceScatter``, ``alltoallv``.

Capitals, underscores, hyphens and the library's prefix do not matter.  The variants with uneven or merged parts
(``alltoallv``, ``all_to_all_single``) are the same operation; their own name is returned beside it, for ``detail``.
"""

from __future__ import annotations

import re

from profiles.observations.records import CollectiveOperation

_NAMES: dict[str, CollectiveOperation] = {
    "allreduce": "all_reduce",
    "allr": "all_reduce",
    "allgather": "all_gather",
    "allgatherv": "all_gather",
    "allg": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescatterv": "reduce_scatter",
    "redsct": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallsingle": "all_to_all",
    "all2all": "all_to_all",
    "alltoallvc": "all_to_all",
    "alltoallsub": "all_to_all",
    "sendrecv": "send_recv",
    "send": "send_recv",
    "recv": "send_recv",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}
_IN_NAME = re.compile(
    r"(?<![a-z])(?:nccl|rccl|hccl|nccom|hcom)?[_-]?"
    r"(all[_-]?reduce|all[_-]?gather|reduce[_-]?scatter|all[_-]?(?:to|2)[_-]?allv?|send[_-]?recv|broadcast|bcast"
    r"|reduce|gather|scatter)(?![a-z])",
    re.IGNORECASE,
)
KNOWN = "all_reduce, all_gather, reduce_scatter, all_to_all, send_recv, broadcast, reduce, gather or scatter"
"""For hints: what ``--set operation=`` takes."""


def operation_of(name: str) -> CollectiveOperation | None:
    """The operation that ``name`` is the whole name of; None if it is none."""
    plain = re.sub(r"[^a-z0-9]", "", name.casefold())
    plain = re.sub(r"^(?:nccl|rccl|hccl|hcom)", "", plain)
    plain = re.sub(r"(?:perf|test|mpi|bias|base)+$", "", plain)
    return _NAMES.get(plain)


def operation_within(text: str) -> CollectiveOperation | None:
    """The one operation that a file name or a short text mentions; None if it mentions none or several."""
    found = {operation_of(match.group(1)) for match in _IN_NAME.finditer(text)}
    return found.pop() if len(found) == 1 else None


def exact_name(name: str) -> dict[str, str]:
    """``detail`` for a variant: {"variant": "alltoallv"}; empty where the name is the operation's own."""
    plain = re.sub(r"[^a-z0-9]", "", name.casefold())
    plain = re.sub(r"^(?:nccl|rccl|hccl|hcom)", "", plain)
    plain = re.sub(r"(?:perf|test|mpi|base)+$", "", plain)
    special = ("alltoallv", "alltoallvc", "allgatherv", "reducescatterv", "alltoallsingle", "hypercube", "send", "recv")
    return {"variant": plain} if plain in special or plain.endswith("bias") else {}
