"""Loads other than a closed loop, from the curves of a closed one: requests at a rate, and all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.serving.predict.curve import MEAN, PERCENTILES, InstanceCurve

Array = NDArray[np.float64]
MOST_IN_FLIGHT = 16384.0
LOADS: Array = np.geomspace(1.0, MOST_IN_FLIGHT, 57)
"""Requests in flight at which a curve is read for other loads: a factor of 2^(1/4) apart."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One load of one instance: where on its curve it is, and what waiting comes on top."""

    load: float
    """Requests in flight."""
    waiting: dict[float, float]
    """Seconds to add to the curve's time to the first token, by percentile."""
    requests_per_s: float
    saturated: bool = False
    """More arrives than is answered: waiting grows without end."""


def at_rate(curve: InstanceCurve, requests_per_s: float) -> LoadPoint:
    """Requests that arrive at random times: where the closed curve answers as many.

    On top they wait for the rest of the iteration that runs, half of the mean interval, and for the prompts of chance
    companions: ``u / 2 (1 - u)`` of an own prompt's time at the share ``u`` of the largest rate (M/D/1, at most what
    the closed curve has above an empty instance's); exponential beyond its mean.
    """
    rates = np.maximum.accumulate(curve.requests_per_s)
    most = float(rates[-1])
    if requests_per_s >= 0.999 * most:
        return LoadPoint(float(curve.loads[-1]), {MEAN: np.inf, **dict.fromkeys(PERCENTILES, np.inf)}, most, True)
    load = float(np.interp(requests_per_s, rates, curve.loads))
    if requests_per_s < rates[0]:
        load = requests_per_s / float(rates[0])
    use = requests_per_s / most
    own = float(curve.ttft_s[MEAN][0]) if curve.ttft_s else 0.0
    wait = 0.5 * float(np.interp(load, curve.loads, curve.interval_s)) * min(load, 1.0)
    wait += own * use / (2 * (1 - use))
    return LoadPoint(load, {MEAN: wait} | {q: -wait * float(np.log1p(-q / 100)) for q in PERCENTILES}, requests_per_s)


def all_at_once(curve: InstanceCurve, requests: float) -> LoadPoint:
    """``requests`` sent together: those that find no place wait until others end.

    While they last the instance runs as in a closed loop of all that fit; the last ones drain.  Waiting for a place is
    even between none and ``(requests - placed) / rate``.
    """
    index = int(np.argmax(curve.requests_per_s >= 0.995 * curve.requests_per_s.max()))
    placed = min(float(curve.loads[index]), requests)
    rate = float(np.interp(placed, curve.loads, curve.requests_per_s))
    whole = float(np.interp(placed, curve.loads, curve.end_to_end_s[MEAN]))
    last = max(requests - placed, 0.0) / rate
    mean = last / 2 * max(requests - placed, 0.0) / requests
    waiting = {MEAN: mean} | {q: max(last * (q / 100 * requests - placed) / requests, 0.0) for q in PERCENTILES}
    return LoadPoint(placed, waiting, requests / (last + whole))
