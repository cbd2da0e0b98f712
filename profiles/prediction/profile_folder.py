"""The folder of profiles, and the one for a device: derived from the observation store, cached beside it.

A profile is built again only when the active batches of its device (or of its siblings) change: the cache file
``fits/by-batches/<hash of the batch ids>`` names the profile that they gave.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from profiles.catalogue import builtin_devices, load_device
from profiles.device import Device
from profiles.document import canonical_json
from profiles.errors import NotFound, ProfileMissing
from profiles.observation_store.address import profiles_folder
from profiles.observation_store.store import ObservationStore
from profiles.prediction.build_profile import build_profile
from profiles.prediction.profile import Profile
from profiles.prediction.profile_file import SUFFIX, VERSION, identified, load, save
from profiles.prediction.reference import ProfileReference

FITS = "fits"
BUILD_VERSION = 4
"""Raised with every change of how profiles are built, so that cached ones are built again."""


def profile_of_device(device: Device, folder: Path | None = None) -> Profile | None:
    """The profile of a device from everything stored; None where nothing was measured."""
    store = ObservationStore(folder or profiles_folder())
    siblings = sibling_devices(device)
    names = {device.name, *(sibling.name for sibling in siblings)}
    batches = sorted(batch.batch_id for batch in store.batches() if batch.environment.device in names)
    if not batches:
        return None
    fits = store.folder / FITS
    question = [VERSION, BUILD_VERSION, device.content_hash(), batches]
    marker = fits / "by-batches" / hashlib.sha256(canonical_json(question).encode()).hexdigest()
    if marker.exists():
        known = fits / f"{marker.read_text(encoding='ascii').strip()}{SUFFIX}"
        if known.exists():
            return _loaded(known)
    profile = identified(build_profile(store, device, siblings))
    if not profile.num_points:
        return None
    save(profile, fits)
    marker.parent.mkdir(parents=True, exist_ok=True)
    partial = marker.with_name(f".{marker.name}.partial")
    partial.write_text(profile.profile_id, encoding="ascii")
    partial.replace(marker)
    return profile


def keep(profile: Profile, folder: Path | None = None) -> ProfileReference:
    """Save a profile and return its reference."""
    save(identified(profile), (folder or profiles_folder()) / FITS)
    return reference_of(profile)


def reference_of(profile: Profile) -> ProfileReference:
    """The identity of a profile that is saved."""
    return ProfileReference(profile_id=profile.profile_id, device=profile.device, num_points=profile.num_points)


def file_content(profile_id: str, folder: Path | None = None) -> bytes:
    """The file of a saved profile, to be kept on another machine.  Raises ProfileMissing."""
    path = (folder or profiles_folder()) / FITS / f"{profile_id}{SUFFIX}"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ProfileMissing(
            f"profile {profile_id[:12]} is not here", where=str(path.parent), hint="import the same measurements again"
        ) from None


def keep_file(profile_id: str, content: bytes, folder: Path | None = None) -> None:
    """Keep what ``file_content`` gave on this machine; what is there already stays.  Loading checks the content."""
    path = (folder or profiles_folder()) / FITS / f"{profile_id}{SUFFIX}"
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def referenced_profile(reference: ProfileReference, folder: Path | None = None) -> Profile:
    """The content of a reference.  Raises ProfileMissing where it is not on this machine."""
    path = (folder or profiles_folder()) / FITS / f"{reference.profile_id}{SUFFIX}"
    if not path.exists():
        raise ProfileMissing(
            f"the plan leans on profile {reference.profile_id[:12]} of {reference.device}, which is not here",
            where=str(path.parent),
            hint="copy it from where the plan was made, import the same measurements, or plan with --profile none",
        )
    return _loaded(path)


def find_profile(prefix: str, folder: Path | None = None) -> Profile:
    """The saved profile whose id begins with ``prefix``.  Raises NotFound."""
    fits = (folder or profiles_folder()) / FITS
    found = sorted(fits.glob(f"{prefix}*{SUFFIX}")) if prefix and all(c in "0123456789abcdef" for c in prefix) else []
    if len(found) != 1:
        what = f"there is no profile '{prefix}'" if not found else f"{len(found)} profiles begin with '{prefix}'"
        raise NotFound(what, where="--profile", hint="give a longer id, a file, 'auto' or 'none'")
    return _loaded(found[0])


def sibling_devices(device: Device) -> list[Device]:
    """Devices of the same vendor and architecture, nearest peak rate first."""
    others = [load_device(name) for name in builtin_devices() if name != device.name]
    same = [other for other in others if (other.vendor, other.architecture) == (device.vendor, device.architecture)]
    peak = device.peak_flops_per_s.get("bf16", 1.0)
    return sorted(same, key=lambda other: (abs(other.peak_flops_per_s.get("bf16", 0.0) - peak), other.name))


@lru_cache(maxsize=8)
def _loaded(path: Path) -> Profile:
    return load(path)
