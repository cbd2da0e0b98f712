"""The measurements that a plan uses, as ``--profile`` says: auto, none, a file, or the id of a profile."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from profiles.device import Device
    from profiles.prediction.profile import Profile
    from profiles.prediction.reference import ProfileReference

AUTO, NONE = "auto", "none"


def chosen_profile(text: str, device: Device) -> ProfileReference | None:
    """The profile for ``device``.  ``auto`` takes what is stored for it, if anything.

    Raises DocumentInvalid (a file that measured nothing of the device), NotFound (no such id or file).
    """
    if text == NONE or (text == AUTO and not _something_stored()):
        return None

    from profiles.prediction.profile_folder import find_profile, keep, profile_of_device, reference_of

    if text == AUTO:
        found = profile_of_device(device)
        return None if found is None else reference_of(found)
    path = Path(text)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return keep(_profile_of_file(path, device))
    found = find_profile(text)
    if found.device != device.name:
        raise DocumentInvalid(
            f"profile {text} is of {found.device}, the cluster has {device.name}",
            where="--profile",
            hint="give a profile of the cluster's device, auto or none",
        )
    return reference_of(found)


def _something_stored() -> bool:
    """Whether there is any batch: most plans need not load what reads them."""
    from profiles.observation_store.address import BATCHES, profiles_folder

    folder = profiles_folder() / BATCHES
    try:
        return any(folder.iterdir())
    except OSError:
        # Not there, or not readable: the store itself says which.
        return folder.exists()


def _profile_of_file(path: Path, device: Device) -> Profile:
    """A profile from one measured or foreign file alone; it is not stored as an observation."""
    from profiles.importing.read_sources import read_sources
    from profiles.observation_store.store import ObservationStore
    from profiles.prediction.build_profile import build_profile

    with TemporaryDirectory(prefix="meshwright-profile-") as folder:
        store = ObservationStore(Path(folder))
        for result in read_sources([path]):
            if result.error is not None:
                raise result.error
            if result.imported is not None and result.source is not None:
                store.add(result.imported, result.source, result.given)
        devices = {batch.environment.device or batch.environment.device_reported for batch in store.batches()}
        profile = build_profile(store, device)
    if profile.num_points:
        return profile
    measured = ", ".join(sorted(name or "an unnamed device" for name in devices)) or "nothing"
    raise DocumentInvalid(
        f"the file measured {measured}; nothing in it can be looked up for {device.name}",
        where=str(path),
        hint="give a profile of the cluster's device; `meshwright profile import --dry-run` shows what a file holds",
    )
