"""The faster layout or the one that moves less: after how long the first repays its longer move.

Tokens after a time H on a layout of rate r, which starts after a move of m seconds: ``r (H - m)``.
Two layouts are equal at ::

    H = (r_f m_f - r_k m_k) / (r_f - r_k)        f: the faster one, k: the kept one

The horizon is what the caller says (until the node returns), else the mean time to the next failure of so many devices
at the published rate (``planner.search.goodput.failures``): then the devices change again.
"""

from __future__ import annotations

import math

from pydantic import Field

from planner.search.goodput.failures import failure_rates, given_rates, run_of_device
from profiles.document import Document
from profiles.units import HOUR_S


class BreakEven(Document):
    """The kept layout against the faster one."""

    seconds: float | None = Field(description="from now; 0 = at once, null = never: the faster layout is not faster")
    steps: int | None = Field(description="of the faster layout until then; null = never")
    horizon_s: float | None = Field(description="how long the devices stay as they are; null = no failure is expected")
    horizon_of: str = Field(description="where the horizon comes from")


def horizon(
    hours: float | None, failures_per_device_hour: float | None, device: str, devices: int
) -> tuple[float, str]:
    """Seconds until the devices change again, and where that comes from."""
    if hours is not None:
        return hours * HOUR_S, "given"
    rates = (
        failure_rates(run_of_device(device))
        if failures_per_device_hour is None
        else given_rates(failures_per_device_hour)
    )
    rate = rates.per_device_hour() * devices
    source = f"mean time to the next failure of {devices:,} devices, failures as {rates.run} ({rates.source})"
    return (HOUR_S / rate if rate > 0 else math.inf), source


def break_even(
    kept_tokens_per_s: float, kept_move_s: float, fast_tokens_per_s: float, fast_move_s: float, fast_step_s: float,
    until: tuple[float, str],
) -> BreakEven:  # fmt: skip
    """When both have trained the same number of tokens."""
    at: float | None = None
    gain = fast_tokens_per_s - kept_tokens_per_s
    if gain > 0:
        at = max(0.0, (fast_tokens_per_s * fast_move_s - kept_tokens_per_s * kept_move_s) / gain)
    return BreakEven(
        seconds=at,
        steps=None if at is None else math.ceil(max(0.0, at - fast_move_s) / fast_step_s),
        horizon_s=until[0] if math.isfinite(until[0]) else None,
        horizon_of=until[1],
    )
