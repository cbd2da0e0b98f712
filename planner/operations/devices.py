"""Accelerators by name."""

from __future__ import annotations

from typing import Any

from planner.answers.summaries import device_summary
from planner.operations.named import Listing, NamedRequest, Nothing
from planner.operations.operation import Operation
from profiles.catalogue import builtin_devices, load_device

LIST_DEVICES = Operation(
    name="list_devices",
    summary="Known accelerators, with their peak rates",
    description="As in the hardware catalogue.",
    request=Nothing,
    answer=Listing,
    work=lambda _session, _asked: Listing(items=tuple(device_summary(load_device(name)) for name in builtin_devices())),
    path="/v1/devices",
    tag="catalogue",
    errors=(),
    command="devices list",
)
GET_DEVICE = Operation(
    name="get_device",
    summary="One accelerator, with the source of every number",
    description="Bytes, bytes a second and FLOPs a second.",
    request=NamedRequest,
    answer=dict[str, Any],
    work=lambda _session, asked: load_device(asked.name, "name").model_dump(mode="json"),
    path="/v1/devices/{name}",
    tag="catalogue",
    errors=(404,),
    command="devices show",
)
