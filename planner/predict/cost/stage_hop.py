"""The time of one hop between neighbouring stages, when some hops leave the node and others stay inside.

The schedule formulas know one hop ``c``.  Neighbours are ``stride`` devices apart, so a pipeline of several stages a
node crosses its border once every few hops.  A step waits for every hop in turn: ``c`` is their mean.  1F1B goes back
and forth between the same two stages and so meets its slowest hop more often: there ``c`` is at least the middle
between fastest and slowest hop.

Against the simulator with hops of 0.2 % and 5 % of a forward pass, 8 stages, 2 and 4 of them a node: gpipe exact;
zb_h1, interleaved and zbv at most 0.2 % of the step below it, 1f1b within 0.5 %.  The way from the last stage back to
the first (interleaved) is taken as a mean hop.  Shape letters: R rows, V network levels.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np

from planner.predict.cost.hardware import Hardware
from planner.strategy.rows import StrategyRows, distinct_rows
from planner.strategy.schedules import SCHEDULE_NAMES
from solver.arrays import Array, Ints


def hop_stride(rows: StrategyRows) -> Ints:
    """Distance of neighbouring stages in devices: [R]."""
    return np.asarray(rows.tp * rows.cp * np.where(rows.pp_inner > 0, 1, rows.dp))


def stage_hop_s(hardware: Hardware, rows: StrategyRows, size_bytes: Array, stride: Ints) -> Array:
    """Seconds of one hop of ``size_bytes`` between stages ``stride`` devices apart; 0 without a pipeline: [R]."""
    if not hardware.levels or not np.any(rows.pp > 1):
        return np.zeros(len(rows))
    domains = tuple(level.devices_per_group for level in hardware.levels)
    distinct, index = distinct_rows([rows.pp, stride, rows.pp_inner])
    share = np.array([_level_shares(*setting, domains) for setting in distinct.tolist()])[index]
    mean_s = slowest_s = np.zeros(len(rows))
    fastest_s = np.full(len(rows), np.inf)
    for level in range(len(domains)):
        seconds, part = _hop_s(hardware, size_bytes, stride, level), share[:, level]
        mean_s = mean_s + part * seconds
        fastest_s = np.where(part > 0, np.minimum(fastest_s, seconds), fastest_s)
        slowest_s = np.where(part > 0, np.maximum(slowest_s, seconds), slowest_s)
    back_and_forth = rows.schedule == SCHEDULE_NAMES.index("1f1b")
    hop_s = np.where(back_and_forth, np.maximum(mean_s, 0.5 * (fastest_s + slowest_s)), mean_s)
    return np.where(rows.pp > 1, hop_s, 0.0)


def _hop_s(hardware: Hardware, size_bytes: Array, stride: Ints, level: int) -> Array:
    """Seconds of a hop whose innermost common level is ``level``."""
    beyond = hardware.levels[level - 1].devices_per_group if level else 1
    distance = np.maximum(stride, beyond).astype(float)
    return hardware.collective_s("send_recv", size_bytes, np.full(len(size_bytes), 2.0), distance)


@lru_cache(maxsize=16384)
def _level_shares(pp: int, stride: int, pp_inner: int, domains: tuple[int, ...]) -> tuple[float, ...]:
    """Part of a pipeline's hops that each level carries; they sum to one."""
    hops = max(pp - 1, 1)
    outside = [hops, *(_hops_leaving(pp, stride, pp_inner, devices) for devices in domains[:-1]), 0]
    leaving = np.minimum.accumulate(outside)
    return tuple(((leaving[:-1] - leaving[1:]) / hops).tolist())


def _hops_leaving(pp: int, stride: int, pp_inner: int, devices: int) -> int:
    """Hops of the worst-placed pipeline on which some device has its partner outside its ``devices`` neighbours."""
    block = pp * stride
    starts = np.arange(devices // gcd(devices, block) if pp_inner else 1)[:, None] * block
    first = starts + np.arange(max(pp - 1, 1))[None, :] * stride
    return int((first // devices != (first + 2 * stride - 1) // devices).sum(axis=1).max())


def stage_host_s(hardware: Hardware, rows: StrategyRows, hop_s: Array) -> Array:
    """What every stage loses on each micro-batch: calibrated overhead, and transfers that block it: [R].

    A stage between two others sends and receives both ways; of two stages each has one neighbour.
    """
    calibrated = np.full(len(rows), hardware.factors.host_overhead_s)
    if hardware.physics.blocking_hops:
        calibrated = calibrated + 2.0 * np.minimum(rows.pp - 1, 2) * hop_s
    stall_s = hardware.physics.transfer_stall_s
    if stall_s == 0.0 or hardware.num_devices <= hardware.pool.devices_per_node:
        return calibrated
    return calibrated + stall_s * 2.0 * np.minimum(rows.pp - 1, 2)
