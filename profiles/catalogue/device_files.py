"""Devices by catalogue name, such as ``h100-sxm5-80gb``."""

from __future__ import annotations

from pathlib import Path

from profiles.catalogue.kept_yaml import load_catalogue_file
from profiles.consistency import check_device
from profiles.device import Device
from profiles.errors import NotFound
from profiles.spelling import nearest_name
from profiles.validation import read_document, require

DEVICE_FOLDER = Path(__file__).parent / "devices"


def builtin_devices() -> tuple[str, ...]:
    """Names of all catalogue devices, sorted."""
    return tuple(sorted(path.stem for path in DEVICE_FOLDER.glob("*.yaml")))


def load_device(name: str, where: str = "--device") -> Device:
    """The catalogue device ``name`` (any case).  Raises NotFound with the nearest name."""
    known = builtin_devices()
    plain = name.casefold()
    if plain not in known:
        match = nearest_name(name, known)
        hint = f"did you mean '{match}'?" if match else f"known devices: {', '.join(known)}"
        raise NotFound(f"there is no device '{name}' in the catalogue", where=where, hint=hint)
    path = DEVICE_FOLDER / f"{plain}.yaml"
    device = read_document(Device, load_catalogue_file(path), str(path), human_units=True)
    require(check_device(device), str(path))
    return device
