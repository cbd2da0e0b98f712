"""The devices on which the report was recorded: one batch for each device name.

``deviceId`` of an activity is the CUDA ordinal inside its process; ``TARGET_INFO_CUDA_DEVICE`` maps it to the id of
``TARGET_INFO_GPU``.  Host and user names, which the report also holds, are left where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.device_names import catalogue_device
from profiles.importing.foreign_database import Database
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment

_MAX_DEVICES = 4096
_ACTIVITIES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")


@dataclass(slots=True)
class Machine:
    """Batches by device name, and which device has which name."""

    batches: list[Batch]
    device_known: bool
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    """(process id, or -1 for all; CUDA ordinal) to device name."""

    def index(self, process: int, ordinal: int) -> int:
        """Position in ``batches`` of a device."""
        if len(self.batches) == 1:
            return 0
        name = self.names.get((process, ordinal)) or self.names.get((-1, ordinal), "")
        found = (at for at, batch in enumerate(self.batches) if batch.environment.device_reported == name)
        return next(found, 0)


def read_machine(database: Database, imported: Imported, options: ReadOptions) -> Machine:
    """Devices, driver and time of recording."""
    names = _device_names(database)
    reported = sorted(set(names.values())) or [""]
    given = options.given.get("device", "")
    common = {
        "num_devices": _num_devices(database),
        "driver_version": database.setting("TARGET_INFO_SYSTEM_ENV", "NvDriverVersion"),
        "captured_at": _captured_at(database),
    }
    cuda = database.setting("TARGET_INFO_SYSTEM_ENV", "CudaDriverVersion")
    if cuda.isdigit():
        imported.facts["cuda_version_of_driver"] = f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}"
    batches = [
        Batch(
            Environment.model_validate(
                {"device": given or catalogue_device(name) or "", "device_reported": name, **common}
            )
        )
        for name in reported
    ]
    return Machine(batches, device_known=bool(given) or reported != [""], names=names)


def _device_names(database: Database) -> dict[tuple[int, int], str]:
    by_gpu = _gpu_names(database)
    if not database.has("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId"):
        return {(-1, gpu): name for gpu, name in by_gpu.items()}
    pid = "pid" if database.has("TARGET_INFO_CUDA_DEVICE", "pid") else "-1"
    query = f"SELECT {pid}, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE LIMIT {_MAX_DEVICES}"
    found = {
        (process if isinstance(process, int) else -1, ordinal): by_gpu[gpu]
        for process, ordinal, gpu in database.rows(query)
        if isinstance(ordinal, int) and gpu in by_gpu
    }
    return found or {(-1, gpu): name for gpu, name in by_gpu.items()}


def _gpu_names(database: Database) -> dict[int, str]:
    for table, key in (("TARGET_INFO_GPU", "id"), ("TARGET_INFO_CUDA_GPU", "deviceId"), ("TARGET_INFO_CUDA_GPU", "id")):
        if database.has(table, key, "name"):
            query = f"SELECT {key}, name FROM {table} WHERE typeof(name) = 'text' LIMIT {_MAX_DEVICES}"
            return {gpu: str(name)[:100] for gpu, name in database.rows(query) if isinstance(gpu, int)}
    return {}


def _num_devices(database: Database) -> int | None:
    """Devices that did something: (process, ordinal) pairs, as every process may call its own device 0."""
    counts = []
    for table in _ACTIVITIES:
        if database.has(table, "deviceId"):
            process = "globalPid" if database.has(table, "globalPid") else "0"
            counted = f"SELECT count(*) FROM (SELECT DISTINCT deviceId, {process} FROM {table})"
            counts.append(int(database.value(counted) or 0))
    return max(counts, default=0) or None


def _captured_at(database: Database) -> str:
    if not database.has("TARGET_INFO_SESSION_START_TIME", "utcTime"):
        return ""
    value = database.value("SELECT utcTime FROM TARGET_INFO_SESSION_START_TIME LIMIT 1")
    return value[:40] if isinstance(value, str) else ""
