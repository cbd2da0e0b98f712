"""The pipeline schedules as data: who holds which chunk, and what an order may do.

``SCHEDULES`` declares each once.  The sets below, the codes in rows of strategies and the tables of the documentation
follow from it; its order of actions is written in ``planner.predict.schedule.orders``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

ScheduleName = Literal["gpipe", "1f1b", "interleaved", "zb_h1", "zbv", "dualpipev", "looped_bfs", "interleaved_zb"]
ChunkPlacement = Literal["one", "looped", "v"]
"""One chunk a device; several, dealt in rounds: device r holds chunks r, r+pp, r+2*pp, ...; two, placed in a V: device
r holds chunks r and 2*pp-1-r."""


class Schedule(NamedTuple):
    """One schedule."""

    name: ScheduleName
    source: str
    """Where its order was published."""
    placement: ChunkPlacement = "one"
    splits_backward: bool = False
    """Whether an input gradient may go back before the weight gradient of the same pass is computed."""
    is_breadth_first: bool = False
    """Whether every forward of a chunk runs before its first backward."""
    is_grouped: bool = False
    """Whether micro-batches run in groups, each through a chunk before the next."""
    remarks: str = ""


SCHEDULES = (
    Schedule("1f1b", "Narayanan et al., arXiv 2104.04473"),
    Schedule(
        "gpipe", "Huang et al., arXiv 1811.06965", is_breadth_first=True, remarks="all forwards, then all backwards"
    ),
    Schedule(
        "interleaved", "Narayanan et al., arXiv 2104.04473, with Megatron-LM's micro-batch groups", "looped",
        is_grouped=True,
    ),
    Schedule(
        "zb_h1", "Qi et al., arXiv 2401.10241", splits_backward=True, remarks="input and weight gradients apart"
    ),
    Schedule("zbv", "Qi et al., arXiv 2401.10241, V placement", "v", splits_backward=True),
    Schedule("dualpipev", "DeepSeek's DualPipe in V placement", "v", splits_backward=True, remarks="needs m >= 2 pp"),
    Schedule(
        "looped_bfs", "Lamy-Poirier, arXiv 2211.05953", "looped", is_breadth_first=True,
        remarks="all micro-batches through a chunk before the next one; keeps every activation",
    ),
    Schedule(
        "interleaved_zb", "Qi et al., arXiv 2401.10241, several chunks a device", "looped", splits_backward=True,
        is_grouped=True, remarks="zb_h1 over interleaved chunks; micro-batch groups of pp, as torch runs them",
    ),
)  # fmt: skip
"""The order is that of the codes in rows of strategies."""
SCHEDULE_NAMES: tuple[ScheduleName, ...] = tuple(each.name for each in SCHEDULES)

V_SCHEDULES: frozenset[str] = frozenset(each.name for each in SCHEDULES if each.placement == "v")
LOOPED_SCHEDULES: frozenset[str] = frozenset(each.name for each in SCHEDULES if each.placement == "looped")
SPLIT_SCHEDULES: frozenset[str] = frozenset(each.name for each in SCHEDULES if each.splits_backward)
BREADTH_FIRST_SCHEDULES: frozenset[str] = frozenset(each.name for each in SCHEDULES if each.is_breadth_first)
GROUPED_SCHEDULES: frozenset[str] = frozenset(each.name for each in SCHEDULES if each.is_grouped)


def chunk_stages(pp: int, vpp: int, *, v_placed: bool) -> tuple[int, ...]:
    """The pipeline rank of every chunk, in model order (length ``pp * vpp``).

    Loop placement ``chunk % pp`` (arXiv 2104.04473); V schedules go down the ranks and back up, so rank r holds chunks
    r and 2*pp-1-r (arXiv 2401.10241, section 6).
    """
    return (*range(pp), *reversed(range(pp))) if v_placed else tuple(range(pp)) * vpp
