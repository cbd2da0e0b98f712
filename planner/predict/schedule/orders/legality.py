"""The sizes that a pipeline schedule may have.

Sources: Megatron-LM ``core/pipeline_parallel/schedules.py`` (interleaved: p >= 2, group size in [p, m], last group 0 or
>= p; the same is asked of interleaved_zb), arXiv 2211.05953 (looped BFS: any number of micro-batches), torch 2.13
``distributed/pipelining/schedules.py`` (two chunks a rank in V order; DualPipeV: m >= 2p).
torch's extra demand that plain 1F1B has m >= p is a rule of that back-end, not of the order, and is not made here.
"""

from __future__ import annotations

from typing import get_args

from planner.errors import DocumentInvalid
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName


def order_findings(
    schedule: str, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> tuple[str, ...]:
    """Everything that makes these sizes impossible, one sentence each; empty when legal."""
    if schedule not in get_args(ScheduleName):
        return (f"unknown schedule {schedule!r}; known: {', '.join(get_args(ScheduleName))}",)
    findings = [
        f"{name} is {value}, must be at least 1"
        for name, value in (("pp", num_stages), ("vpp", vpp), ("num_microbatches", num_microbatches))
        if value < 1
    ]
    if microbatch_group_size < 0:
        findings.append(f"microbatch_group_size is {microbatch_group_size}, must not be negative")
    if findings:
        return tuple(findings)
    if schedule in LOOPED_SCHEDULES:
        findings += _loop_findings(schedule, num_stages, vpp)
    if schedule in GROUPED_SCHEDULES:
        return (*findings, *_group_findings(num_stages, num_microbatches, microbatch_group_size))
    if microbatch_group_size:
        owners = " and ".join(sorted(GROUPED_SCHEDULES))
        findings.append(f"microbatch_group_size is {microbatch_group_size}, only {owners} have one (use 0)")
    if schedule in LOOPED_SCHEDULES:
        return tuple(findings)
    wanted_vpp = 2 if schedule in V_SCHEDULES else 1
    if vpp != wanted_vpp:
        findings.append(f"vpp is {vpp}, {schedule} needs exactly {wanted_vpp}")
    if schedule == "dualpipev" and num_microbatches < 2 * num_stages:
        findings.append(f"num_microbatches is {num_microbatches}, dualpipev needs at least 2*pp = {2 * num_stages}")
    return tuple(findings)


def _loop_findings(schedule: str, num_stages: int, vpp: int) -> list[str]:
    return [
        f"{name} is {value}, {schedule} needs at least 2"
        for name, value in (("pp", num_stages), ("vpp", vpp))
        if value < 2
    ]


def _group_findings(num_stages: int, num_microbatches: int, group: int) -> list[str]:
    findings = []
    group = group or num_stages
    if not num_stages <= group <= num_microbatches:
        findings.append(
            f"microbatch_group_size is {group}, must lie in [pp, num_microbatches] = [{num_stages}, {num_microbatches}]"
        )
    elif 0 < num_microbatches % group < num_stages:
        findings.append(
            f"the last micro-batch group has {num_microbatches % group} of {group} micro-batches, "
            f"must have 0 or at least pp = {num_stages}"
        )
    return findings


def check_order_inputs(
    schedule: str, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> None:
    """Raise ``DocumentInvalid`` with every finding when the sizes are not legal."""
    findings = order_findings(schedule, num_stages, vpp, num_microbatches, microbatch_group_size)
    if findings:
        raise DocumentInvalid(
            f"schedule {schedule!r} cannot be built: " + "; ".join(findings),
            where="strategy#/schedule",
            hint="change pp, vpp, num_microbatches or microbatch_group_size, or take another schedule",
        )
