"""The few factors between the planner's model and one back-end on one device: bounded and readable.

=================  =========================================================================  =================
factor             meaning                                                                    neutral, bounds
=================  =========================================================================  =================
compute            operator times of the back-end over the predicted ones                     1, 0.4 to 4
communication      collective and point-to-point times over the predicted ones                1, 0.4 to 4
host_overhead_s    seconds that a stage loses on every micro-batch: launches, host code       0 s, up to 0.25 s
fixed_bytes        bytes a device holds beside tensors, more (less) than the planner assumes  0, -0.9 to 24 GB
fragmentation      what the allocator counts for activations over their predicted size        1, 0.5 to 3
=================  =========================================================================  =================

``fixed_bytes`` adds to ``planner.predict.cost.hardware.FRAMEWORK_BYTES`` (context, libraries, workspaces).  Everything
is applied inside the shared cost functions, so that bounds, search and estimate see the same numbers.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document

SPREAD_ROWS = 8
"""Rows from which the spread left after calibration replaces the prior spread of a back-end."""

MEANINGS: dict[str, str] = {
    "compute": "operator times of the back-end over the predicted ones",
    "communication": "collective and point-to-point times over the predicted ones",
    "host_overhead_s": "added to every micro-batch of every stage: launches and host code",
    "fixed_bytes": "held on a device beside tensors, more than the planner assumes",
    "fragmentation": "what the allocator counts for activations over their predicted size",
}
UNITS: dict[str, str] = {
    "compute": "ratio",
    "communication": "ratio",
    "host_overhead_s": "s",
    "fixed_bytes": "bytes",
    "fragmentation": "ratio",
}


def factor_words(name: str, value: float) -> str:
    """``compute x 1.247``, ``host_overhead_s 28.75 ms``, ``fixed_bytes 11.67 GiB``."""
    if UNITS[name] == "ratio":
        return f"{name} x {value:.3f}"
    return f"{name} {1e3 * value:.2f} ms" if UNITS[name] == "s" else f"{name} {value / 2**30:.2f} GiB"


class Factors(Document):
    """The factors; the neutral ones change nothing."""

    schema_version: Literal[1] = 1
    compute: float = Field(default=1.0, ge=0.4, le=4.0, description=MEANINGS["compute"])
    communication: float = Field(default=1.0, ge=0.4, le=4.0, description=MEANINGS["communication"])
    host_overhead_s: float = Field(default=0.0, ge=0.0, le=0.25, description=MEANINGS["host_overhead_s"])
    fixed_bytes: int = Field(default=0, ge=-900_000_000, le=24_000_000_000, description=MEANINGS["fixed_bytes"])
    fragmentation: float = Field(default=1.0, ge=0.5, le=3.0, description=MEANINGS["fragmentation"])

    def changed(self) -> dict[str, float]:
        """Factors that are not neutral, by name."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name != "schema_version" and getattr(self, name) != field.default
        }


NEUTRAL = Factors()


class AppliedCalibration(Document):
    """What a problem carries of a calibration: its identity, whose it is, its factors and what spread they leave."""

    schema_version: Literal[1] = 1
    calibration_id: str = Field(pattern="^[0-9a-f]{64}$", description="content hash of the whole calibration")
    framework: str
    framework_version: str = ""
    device: str = Field(min_length=1, description="catalogue name of the device that it was fitted on")
    factors: Factors
    num_rows: int = Field(ge=0, description="step times behind the factors")
    fitted_on_profile: str | None = Field(
        default=None, description="profile id of the inputs that it corrects; None = datasheet predictions"
    )
    framework_sigma: float | None = Field(
        default=None, gt=0, le=5, description="leave-one-out spread of ln(step time); None with too few rows"
    )
