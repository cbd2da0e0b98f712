"""XLA profiles: operations of TPUs and GPUs from ``*.xplane.pb`` (XSpace), as JAX, TensorFlow and PyTorch/XLA write it.

Recognised by a first plane called ``/device:...``, ``/host:...`` or ``Task Environment``.  Read without generated code:

- ``/device:TPU:N``: line ``XLA Ops`` (one event an instruction; category, flops and bytes stand at its metadata),
  ``Steps`` (training steps), ``XLA Modules`` (whole programs);
- ``/device:GPU:N``: lines ``Stream #...`` (kernels with ``hlo_op``; copies with ``memcpy_details``), ``XLA Modules``;
- ``/host:CPU``: events with ``hlo_op``, only where no device has any (a run on the CPU).

Durations are picoseconds.  Traps: identifiers of names are valid inside one plane; a value may be a reference to a name
(``ref_value``); events may be aggregates without a time of their own; derived lines repeat the same work (``Framework
Ops``, ``Source code``).  Files that went through a text conversion have lost every byte above 127: they are refused.
Host names, which the file holds, are not read.
Source: openxla/xla third_party/tsl/tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.xla_xplane.activities import read_planes
from profiles.importers.xla_xplane.space import Plane, planes_of
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.protobuf_wire import WireError
from profiles.importing.source_file import Head, SourceFile

_MAX_BYTES = 1 << 30
_REPLACED = b"\xef\xbf\xbd"
_FIRST_PLANES = (b"/device:", b"/host:", b"Task Environment")


def matches(head: Head) -> bool:
    """Whether it begins like an XSpace: a plane whose name stands near its beginning."""
    return head.raw[:1] == b"\n" and any(name in head.raw[:64] for name in _FIRST_PLANES)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All devices of one host.  Raises DocumentInvalid for damaged files and those without operations."""
    file = files[0]
    content = file.read_bytes(_MAX_BYTES)
    if content[:65536].count(_REPLACED) > len(content[:65536]) // 200:
        raise DocumentInvalid(
            "the file was converted to text on its way: every byte above 127 is lost",
            where=file.where,
            hint="copy the original again in binary mode",
        )
    imported = Imported(tool="xla profiler")
    batch = Batch(environment_of(options))
    try:
        planes = planes_of(memoryview(content))
        batch.environment = environment_of(options, _device(planes), **_environment(planes))
        read_planes(planes, batch, imported)
    except WireError as error:
        hint = "the file may be cut off: copy it again"
        raise DocumentInvalid(f"the protobuf is damaged: {error}", where=file.where, hint=hint) from None
    if not batch.num_observations:
        found = imported.bad_rows[0].what if imported.bad_rows else "no device has operations"
        hint = "profile steps that run on a device: jax.profiler.trace(DIRECTORY)"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    if not batch.environment.device:
        imported.flag("device-unknown", "the file does not name the device; give it with --set device=NAME")
    imported.batches = [batch]
    return imported


def _device(planes: Sequence[Plane]) -> str:
    named = {str(plane.stats["device_type_string"])[:80] for plane in planes if "device_type_string" in plane.stats}
    return named.pop() if len(named) == 1 else ""


def _environment(planes: Sequence[Plane]) -> dict[str, object]:
    known: dict[str, object] = {"num_devices": sum(plane.device is not None for plane in planes) or None}
    for plane in planes:
        version = plane.stats.get("jax_version")
        if isinstance(version, str):
            known |= {"framework": "jax", "framework_version": version[:40]}
    return known


FORMAT = Format("xla-xplane", "XLA profile (xplane.pb)", matches, read)
