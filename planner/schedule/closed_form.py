r"""How long does a pipeline step take, and how much does it hold, without simulating it?

All formulas are NumPy expressions: scalars and arrays alike.  Symbols: m micro-batches, p stages, n = p-1, v chunks a
device, g micro-batch group; S and M sum and maximum over devices of T = F + I + W (forward, input gradient, weight
gradient of one micro-batch on one device, all its chunks); c one hop between neighbours (asynchronous send).  Averages
over the devices beside the slowest: T' = (S-M)/n, W' = (sum of W)/p, and F' = I' = (T'-W')/2 unless the caller knows F;
where W = 0, because a back-end keeps weight gradients inside the backward pass, F' = T'/3 and I' = 2 T'/3.
(x)+ = max(x, 0); chunk values in lower case (f = F'/2 ... in the V schedules).

    gpipe        m M + n T' + 2n c
    1f1b         m M + n T' + 2n c + (2c N - 3/4 R)+                                      N = m-1 - ceil((m-1)/p)
    interleaved  m M + n T'/v + 2n c + ((v-1) E + (2c - M/v)+ K - R/2)+
                 E = (p c - (g-p) M/3v)+ + (p c - (g_last-p) 2M/3v)+ ;  K = (m v/2 (1-1/2p) - (v-1) g/2 - 1)+
    zb_h1        m M + n(F'+I') - min(m-1, n) W' + 2n c + (2c min((m-2)+, n) + (2c-W')+ (N-n)+ - R/2)+
    zbv          m M + max(A, B),  k = clip(m-p, 0, n), d = clip(2p-1-m, 0, n)
                 A = 2(p-m)+ f + 2n i - 2k w + 2n c + (c (2n + 2 clip(m-p-1, 0, n-1)) + Z - R/2)+
                 B = n i + d(i-w) + 2n c + (c (3n-2-d) + (2c-w)+ + Z - R/2)+ ;  Z = (2c - 2M/3)+ (N-n)+ (fitted)
    dualpipev    m M + max(n(f+i-w) + 2n c + (2n c + (2c-W')+ (N-n)+ - R/2)+,
                           n(2i-w) - f + 2n c + (4n c + (2c-W')+ (N-n)+ - R/2)+)
    looped_bfs   m M + n T'/v + 2n c + (v-1) ((S - m M)/3v + p c)+ + (v-1) (2(S - m M)/3v + p c)+
    interleaved_zb  m M + n(F'+I'-W')/v + 2n c + (2c clip(m-2, 0, n) + (v-1) (p c - (g-p) M/3v)+ + (2c-W'/v)+ Q - R/2)+
                 Q = (n/p (v (m-g) + g - p) - 1)+
    R = (m-1)(M - S/p): slack that stages faster than the slowest have; it hides hops (the factors of R are fitted).

Exact (tests/oracle/test_closed_form.py, to rounding) for equal stages with W <= F <= I, where F' is passed or F = I:
without hops for all eight and every legal m; with hops for gpipe and 1f1b always, for zb_h1 and dualpipev while
2c <= W', for zbv while 2c <= w, for interleaved and looped_bfs while p c <= f and p c <= M/3v, and for interleaved_zb
while all of 2c <= w, p c <= f and p c <= M/3v hold.  Known special cases: 1F1B bubble (p-1)(F+B)
(arXiv 2104.04473), ZB-H1 (p-1)(F+I-W) (arXiv 2401.10241); the others were read off the simulator's critical paths.
For slower links and for uneven stages they are estimates (fitted on the simulator).  Median and largest error in per
cent, chunks drawn in 1 +- u, c 0 to 5 % of a stage, p 2..16, m p..8p (tests/oracle/test_closed_form_error.py):

    u       gpipe   1f1b         interleaved   zb_h1       zbv         dualpipev   looped_bfs    interleaved_zb
    10 %    0, 0    0.5,  6.6    1.5,  6.4     0.3, 2.7    0.5, 3.5    0.8, 4.2    1.4,  5.3     0.9,  3.8
    30 %    0, 0    1.6, 18.6    2.7, 14.4     0.8, 6.5    0.8, 7.2    0.9, 7.7    3.7, 13.9     2.8, 10.7

The large ones are m = p; the last two are too low rather than too high.
The plain sum + (m-1) max of 1F1B is never too low: work of a slow early rank hides in waits.

Every formula is >= m M, and non-decreasing in S, M and c.  In W it is non-INcreasing: with the stage time given, more
of it in weight gradients means less bubble.  A bound from partial sums is therefore admissible with S, M, c from below
and W from above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import DocumentInvalid

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Terms:
    """The symbols of the module docstring, broadcast."""

    m: FloatArray
    p: FloatArray
    n: FloatArray
    v: FloatArray
    g: FloatArray
    total_s: FloatArray
    max_s: FloatArray
    other_s: FloatArray
    forward_s: FloatArray
    input_gradient_s: FloatArray
    weight_s: FloatArray
    raw_weight_s: FloatArray
    hop_s: FloatArray
    slack_s: FloatArray

    def exposed(self, hops_s: FloatArray, share: float = 0.5) -> FloatArray:
        """Hop time that the slack of the faster stages does not hide."""
        return _plus(hops_s - share * self.slack_s)

    def round_trips(self) -> FloatArray:
        """N: hops back and forth that 1F1B shows after the first."""
        return self.m - 1 - np.ceil((self.m - 1) / self.p)

    def slow_link_s(self) -> FloatArray:
        """(2c - W)+ (N - n)+: what hops cost the split schedules once W no longer covers a hop each way."""
        return _plus(2 * self.hop_s - self.raw_weight_s) * _plus(self.round_trips() - self.n)


def pipeline_makespan_s(  # noqa: PLR0917  (sizes, then times, in the order of the formulas)
    schedule: str,
    num_microbatches: ArrayLike,
    num_stages: ArrayLike,
    vpp: ArrayLike,
    microbatch_group_size: ArrayLike,
    sum_stage_s: ArrayLike,
    max_stage_s: ArrayLike,
    sum_weight_gradient_s: ArrayLike,
    hop_s: ArrayLike,
    *,
    sum_forward_s: ArrayLike | None = None,
) -> FloatArray:
    """Seconds from the first forward to the last backward of a step; formulas and their reach: module docstring.

    ``sum_stage_s``, ``sum_weight_gradient_s`` and ``sum_forward_s``: summed over devices, ``max_stage_s``: maximum over
    devices, of one micro-batch through all chunks of a device.  ``sum_forward_s`` matters to zbv and dualpipev alone
    (recompute makes I longer than F); the formulas take I >= F.  ``microbatch_group_size`` 0 = ``num_stages``.
    Sizes are taken as legal (``orders.legality``).  Raises ``DocumentInvalid`` for an unknown schedule.
    """
    formula = _FORMULAS.get(schedule)
    if formula is None:
        raise DocumentInvalid(
            f"unknown schedule {schedule!r}; known: {', '.join(_FORMULAS)}", where="strategy#/schedule"
        )
    sizes = [np.asarray(x, np.float64) for x in (num_microbatches, num_stages, vpp, microbatch_group_size)]
    times = [np.asarray(x, np.float64) for x in (sum_stage_s, max_stage_s, sum_weight_gradient_s, hop_s)]
    terms = _terms(sizes, times, None if sum_forward_s is None else np.asarray(sum_forward_s, np.float64))
    return np.asarray(terms.m * terms.max_s + formula(terms), dtype=np.float64)[()]


def _terms(sizes: list[FloatArray], times: list[FloatArray], sum_forward_s: FloatArray | None) -> _Terms:
    """The averages and shares that the formulas share."""
    m, p, v, g = sizes
    total, longest, weight, hop = times
    other = _plus(total - longest) / np.maximum(p - 1, 1)
    raw_weight = weight / p
    even_split = _plus(other - raw_weight) / 2
    # Without a split the backward pass is taken as twice the forward pass.
    usual = np.where(raw_weight > 0, even_split, other / 3)
    forward = usual if sum_forward_s is None else np.minimum(sum_forward_s / p, even_split)
    return _Terms(
        m=m,
        p=p,
        n=p - 1,
        v=v,
        g=np.where(g == 0, p, g),
        total_s=total,
        max_s=longest,
        other_s=other,
        forward_s=forward,
        input_gradient_s=_plus(other - raw_weight) - forward,
        weight_s=np.minimum(raw_weight, forward),
        raw_weight_s=raw_weight,
        hop_s=hop,
        slack_s=(m - 1) * _plus(longest - total / p),
    )


def in_flight_chunks(
    schedule: str,
    num_stages: ArrayLike,
    vpp: ArrayLike,
    num_microbatches: ArrayLike,
    microbatch_group_size: ArrayLike,
    stage: ArrayLike,
) -> IntArray:
    """Most chunk activations that rank ``stage`` holds at once (born at the forward, dead after B, or W where split).

    gpipe m; 1f1b min(m, p-r); interleaved min(2(p-1-r) + (v-1)g + 1, m v) (arXiv 2104.04473, Megatron-LM group size);
    zb_h1 min(m, p); zbv min(2p, 2m, m+1+r); dualpipev 2p+1; looped_bfs m v; interleaved_zb
    min((v-1)g + p, m v).  Exact for every legal size: equal to the simulator's peak
    (tests/oracle/test_in_flight.py).
    """
    p, v, m, g, r = (np.asarray(x, np.int64) for x in (num_stages, vpp, num_microbatches, microbatch_group_size, stage))
    match schedule:
        case "gpipe":
            peak = m + 0 * r
        case "1f1b":
            peak = np.minimum(m, p - r)
        case "interleaved":
            peak = np.minimum(2 * (p - 1 - r) + (v - 1) * np.where(g == 0, p, g) + 1, m * v)
        case "zb_h1":
            peak = np.minimum(m, p) + 0 * r
        case "zbv":
            peak = np.minimum(np.minimum(2 * p, 2 * m), m + 1 + r)
        case "dualpipev":
            peak = 2 * p + 1 + 0 * (m + r)
        case "looped_bfs":
            peak = m * v + 0 * r
        case "interleaved_zb":
            peak = np.minimum((v - 1) * np.where(g == 0, p, g) + p, m * v) + 0 * r
        case _:
            known = ", ".join(_FORMULAS)
            raise DocumentInvalid(f"unknown schedule {schedule!r}; known: {known}", where="strategy#/schedule")
    return np.asarray(peak, dtype=np.int64)[()]


def _plus(value: FloatArray) -> FloatArray:
    return np.maximum(value, 0.0)


def _gpipe(t: _Terms) -> FloatArray:
    return t.n * t.other_s + 2 * t.n * t.hop_s


def _one_f_one_b(t: _Terms) -> FloatArray:
    return t.n * t.other_s + 2 * t.n * t.hop_s + t.exposed(2 * t.hop_s * t.round_trips(), 0.75)


def _interleaved(t: _Terms) -> FloatArray:
    last_group = np.where(t.m % t.g == 0, t.g, t.m % t.g)
    chunk_s = t.max_s / t.v
    # A group longer than p covers the p hops between a chunk and the next one; forward : backward taken as 1 : 2.
    first_wait = _plus(t.p * t.hop_s - (t.g - t.p) * chunk_s / 3)
    last_wait = _plus(t.p * t.hop_s - (last_group - t.p) * chunk_s * 2 / 3)
    trips = _plus(t.m * t.v / 2 * (1 - 1 / (2 * t.p)) - (t.v - 1) * t.g / 2 - 1)
    hops_s = (t.v - 1) * (first_wait + last_wait) + _plus(2 * t.hop_s - chunk_s) * trips
    return t.n * t.other_s / t.v + 2 * t.n * t.hop_s + np.where(t.n > 0, t.exposed(hops_s), 0.0)


def _zb_h1(t: _Terms) -> FloatArray:
    hops_s = 2 * np.clip(t.m - 2, 0, t.n) * t.hop_s + t.slow_link_s()
    fill_s = t.n * (t.forward_s + t.input_gradient_s) - np.minimum(t.m - 1, t.n) * t.weight_s
    return fill_s + 2 * t.n * t.hop_s + t.exposed(hops_s)


def _zbv(t: _Terms) -> FloatArray:
    m, p, n, c = t.m, t.p, t.n, t.hop_s
    f, i, w = t.forward_s / 2, t.input_gradient_s / 2, t.weight_s / 2
    missing = np.clip(2 * p - 1 - m, 0, n)
    down_s = 2 * _plus(p - m) * f + 2 * n * i - 2 * np.clip(m - p, 0, n) * w
    down_hops_s = c * (2 * n + 2 * np.clip(m - p - 1, 0, _plus(n - 1)))
    back_s = n * i + missing * (i - w)
    back_hops_s = c * _plus(3 * n - 2 - missing) + np.where(n > 0, _plus(2 * c - t.raw_weight_s / 2), 0.0)
    slow_s = _plus(2 * c - t.max_s * 2 / 3) * _plus(t.round_trips() - n)
    return np.maximum(down_s + t.exposed(down_hops_s + slow_s), back_s + t.exposed(back_hops_s + slow_s)) + 2 * n * c


def _dualpipev(t: _Terms) -> FloatArray:
    n, c = t.n, t.hop_s
    f, i, w = t.forward_s / 2, t.input_gradient_s / 2, t.weight_s / 2
    steady_s = n * (f + i - w) + t.exposed(2 * n * c + t.slow_link_s())
    drain_s = np.where(n > 0, n * (2 * i - w) - f + t.exposed(4 * n * c + t.slow_link_s()), 0.0)
    return np.maximum(steady_s, drain_s) + 2 * n * c


def _looped_bfs(t: _Terms) -> FloatArray:
    # Between two chunks a rank waits for the way round the loop, unless its micro-batches fill it.  Forward : backward
    # taken as 1 : 2.
    missing_s = (t.total_s - t.m * t.max_s) / (3 * t.v)
    waits_s = _plus(missing_s + t.p * t.hop_s) + _plus(2 * missing_s + t.p * t.hop_s)
    return t.n * t.other_s / t.v + 2 * t.n * t.hop_s + np.where(t.n > 0, (t.v - 1) * waits_s, 0.0)


def _interleaved_zb(t: _Terms) -> FloatArray:
    first_wait = _plus(t.p * t.hop_s - (t.g - t.p) * t.max_s / (3 * t.v))
    trips = _plus(t.n / t.p * (t.v * (t.m - t.g) + t.g - t.p) - 1)
    hops_s = 2 * np.clip(t.m - 2, 0, t.n) * t.hop_s + (t.v - 1) * first_wait
    hops_s = hops_s + _plus(2 * t.hop_s - t.raw_weight_s / t.v) * trips
    fill_s = t.n * (t.forward_s + t.input_gradient_s - t.weight_s) / t.v
    return fill_s + 2 * t.n * t.hop_s + np.where(t.n > 0, t.exposed(hops_s), 0.0)


_FORMULAS: dict[str, Callable[[_Terms], FloatArray]] = {
    "gpipe": _gpipe,
    "1f1b": _one_f_one_b,
    "interleaved": _interleaved,
    "zb_h1": _zb_h1,
    "zbv": _zbv,
    "dualpipev": _dualpipev,
    "looped_bfs": _looped_bfs,
    "interleaved_zb": _interleaved_zb,
}
