"""What can go wrong with the folder of measurements, hung on the tree of ``profiles.errors``.

    MeshwrightError
    └── ProfileStoreError               exit 2   the folder cannot be used as it is
        ├── ProfileStoreUnwritable      exit 2   no permission, a read-only disk, or not a folder
        ├── ProfileStoreFull            exit 2   no space left
        └── ProfileStoreDamaged         exit 2   a stored file cannot be read any more

A failed write changes nothing: a batch appears whole or not at all.
"""

from __future__ import annotations

import errno
from pathlib import Path

from profiles.errors import MeshwrightError


class ProfileStoreError(MeshwrightError):
    """The folder of measurements cannot be used as it is."""

    slug = "profile-store-error"
    exit_code = 2
    http_status = 500


class ProfileStoreUnwritable(ProfileStoreError):
    """The folder refuses writes: no permission, a read-only disk, or a file stands in its place."""

    slug = "profile-store-unwritable"
    http_status = 503


class ProfileStoreFull(ProfileStoreError):
    """No space is left for the measurements."""

    slug = "profile-store-full"
    http_status = 507


class ProfileStoreDamaged(ProfileStoreError):
    """A stored file is damaged or was written by something else."""

    slug = "profile-store-damaged"


def of_os_error(error: OSError, folder: Path) -> ProfileStoreError:
    """The error of this tree for a failed write below ``folder``."""
    said = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ProfileStoreFull(
            f"the measurements cannot be stored: {said}",
            where=str(folder),
            hint="free some space, or choose another folder with --profiles; nothing was stored",
        )
    return ProfileStoreUnwritable(
        f"the folder of measurements cannot be written: {said}",
        where=str(folder),
        hint="make it writable, or choose another one with --profiles or $MESHWRIGHT_PROFILES",
    )
