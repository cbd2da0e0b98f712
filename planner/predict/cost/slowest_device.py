"""How much slower the slowest of a job's devices computes than a typical one.

Devices of one kind differ: chips leak differently, and each holds its power limit at its own clock.  In synchronous
training every collective waits for the last rank, so the slowest device sets the pace of all.  With relative speeds
that spread by ``sigma`` around their mean, the slowest of N devices is expected ``sigma E(N)`` behind it, ``E(N)`` the
expected maximum of N standard normal values::

    E(N) = Phi^-1( (N - 0.375) / (N + 0.25) )                                    (Blom 1958)
    slowdown(N) = 1 + sigma max(0, E(N) - E(32))

The reference is the size of the runs that the rates of the cost model were chosen on, whose slowest device they hold
already: their median is 16 devices, 64 without the tables of one node.  Matmuls and attention slow down; what waits for
memory does not depend on the clock of the cores.

Spread by architecture: ``device_speed_spread`` of ``profiles/catalogue/architectures.yaml``, from a published range.
Nothing is fitted to runs; 15 published bf16 series of 64 to 2,048 H100 drift least where it is
(``docs/explanation/scale.md``).
"""

from __future__ import annotations

from planner.predict.order_statistics import expected_maximum
from profiles.catalogue.architectures import architectures
from profiles.device import Device

REFERENCE_DEVICES = 32


def slowdown(device: Device, num_devices: int) -> float:
    """Seconds of the slowest of ``num_devices`` over those of the slowest of the reference: at least 1."""
    known = architectures().device_speed_spread
    spread = known.values.get(device.architecture, known.other or 0.0)
    behind = expected_maximum(num_devices) - expected_maximum(REFERENCE_DEVICES)
    return 1.0 + spread * max(0.0, behind)
