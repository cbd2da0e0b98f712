"""The plan of measuring that the flags describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import Conflict, DocumentInvalid

if TYPE_CHECKING:
    from profiles.measure.case import WantedShape
    from profiles.measure.collective_plan import CollectivePlan
    from profiles.measure.grid import GridName
    from profiles.measure.plan import MeasurePlan

DEFAULT_SEQUENCE_LENGTH = 4096
LARGEST_DEGREE = 1 << 20
_GRIDS: dict[str, GridName] = {"none": "none", "small": "small", "full": "full"}


@dataclass(frozen=True, slots=True)
class MeasureFlags:
    """What the command line says, as it says it; None = not said."""

    only: tuple[str, ...]
    dtype: str
    time_budget_s: float
    backend: str
    grid: str | None = None
    model: str | None = None
    degrees: str = "1,2,4,8"
    sequence_length: int | None = None
    sizes: str | None = None
    devices_per_node: int | None = None


def device_plan(said: MeasureFlags) -> MeasurePlan:
    """Operators of one device.  Raises DocumentInvalid, NotFound."""
    from planner.version import __version__
    from profiles.measure.device import present_backends
    from profiles.measure.plan import MeasurePlan

    on_host = said.backend == "cpu" or present_backends()[0] == "cpu"
    return MeasurePlan(
        shapes=_model_shapes(said),
        grid=_GRIDS[said.grid or ("small" if on_host else "full")],
        only=said.only,
        dtypes=_words(said.dtype),
        backend=said.backend,
        time_budget_s=said.time_budget_s,
        tool_version=__version__,
    )


def collective_plan(said: MeasureFlags) -> CollectivePlan:
    """Collectives of all ranks; sums also in fp32, as gradients are reduced.  Raises DocumentInvalid."""
    from planner.version import __version__
    from profiles.measure.collective_plan import FULL_SIZES, CollectivePlan

    dtypes = tuple(name for name in _words(said.dtype) if name != "fp8") or ("bf16",)
    sizes = _sizes(said.sizes) or FULL_SIZES
    return CollectivePlan(
        sizes=sizes,
        dtypes=dtypes if "fp32" in dtypes else (*dtypes, "fp32"),
        backend=said.backend,
        devices_per_node=said.devices_per_node,
        collectives="collectives" in said.only,
        overlap="overlap" in said.only,
        overlap_bytes=min(max(sizes), 64 << 20),
        time_budget_s=said.time_budget_s,
        tool_version=__version__,
    )


def wanted_kinds(only: str | None, *, several: bool) -> tuple[str, ...]:
    """The wanted kinds: under torchrun what needs several ranks, else () = all the rest.  Raises NotFound, Conflict."""
    from profiles.measure.operators import COMMUNICATION, KINDS, check_kinds

    names = _words(only or "")
    check_kinds(names, "--only")
    alone = [name for name in names if name in KINDS]
    if several and alone:
        raise Conflict(
            f"{', '.join(alone)} on several ranks at once would disturb each other",
            where="--only",
            hint="measure operators without torchrun, on one device",
        )
    if alone and len(alone) < len(names):
        raise Conflict(
            "operators need one process, collectives several",
            where="--only",
            hint="measure them in two runs; both go into the same store",
        )
    return names or (COMMUNICATION if several else ())


def _model_shapes(said: MeasureFlags) -> tuple[WantedShape, ...]:
    if said.model is None:
        return ()
    from planner.cli.problem_inputs import whole_number
    from planner.model.load import load_model
    from planner.predict.cost.shard_shapes import shard_shapes

    whole_number(said.sequence_length, "--sequence-length")
    spec = load_model(said.model)
    tokens = said.sequence_length or min(DEFAULT_SEQUENCE_LENGTH, spec.max_sequence_length)
    return tuple(shard_shapes(spec, _degrees(said.degrees), tokens))


def _degrees(text: str) -> list[int]:
    found = []
    for word in _words(text):
        if not (word.isdecimal() and 1 <= int(word) <= LARGEST_DEGREE):
            raise DocumentInvalid(f"'{word}' is not a degree", where="--tp", hint="give whole numbers: --tp 1,2,4,8")
        found.append(int(word))
    return found


def _sizes(text: str | None) -> tuple[int, ...]:
    units = {"": 1, "B": 1, "K": 1 << 10, "KIB": 1 << 10, "M": 1 << 20, "MIB": 1 << 20, "G": 1 << 30, "GIB": 1 << 30}
    found = []
    for word in _words(text or ""):
        digits = word.rstrip("BGIKMbgikm")
        unit = units.get(word[len(digits) :].upper())
        if not digits.isdecimal() or unit is None:
            hint = "give whole bytes or KiB, MiB, GiB: --sizes 4KiB,1MiB"
            raise DocumentInvalid(f"'{word}' is not a size", where="--sizes", hint=hint)
        found.append(int(digits) * unit)
    return tuple(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
