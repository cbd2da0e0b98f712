"""Measurements from the files of a request are stored: all files or none, unless told to keep going."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from api.uploads.answers import file_outcomes, measured_devices
from api.uploads.reading import findings_of, findings_of_names, read_uploads
from api.wire.uploads import ImportAnswer, MeasuredDevice
from profiles.catalogue import builtin_devices, load_device
from profiles.import_outcomes import mark_stored, store_usable
from profiles.observation_store.store import ObservationStore
from profiles.prediction.profile_folder import profile_of_device
from profiles.validation import require


def stored(payload: Mapping[str, Any], check_time: Callable[[], None]) -> ImportAnswer:
    """What was read, and stored unless it is a dry run; ``devices`` without their profiles.

    Raises FindingsInvalid (every file that cannot be used; nothing is stored), ProfileStoreError, and what
    ``check_time`` raises where nobody waits any more, before anything is stored.
    """
    keep_going, dry_run = bool(payload["keep_going"]), bool(payload["dry_run"])
    store = ObservationStore(Path(payload["store"]))
    outcomes = read_uploads(payload, keep_going=keep_going)
    mark_stored(outcomes, store)
    wrong, refused = findings_of_names(payload), findings_of(outcomes)
    forgiven = dry_run or (keep_going and any(outcome.usable for outcome in outcomes))
    require(wrong + refused if wrong or not forgiven else (), "body")
    if not dry_run:
        check_time()
        store_usable(outcomes, store)
    known = builtin_devices()
    return ImportAnswer(
        dry_run=dry_run,
        num_observations=sum(outcome.num_observations for outcome in outcomes),
        files=file_outcomes(outcomes),
        devices=tuple(
            MeasuredDevice(device=name, in_catalogue=name in known, profile_id=None, num_points=0)
            for name in measured_devices(outcomes)
        ),
    )


def with_profiles(answer: ImportAnswer, store: Path) -> ImportAnswer:
    """The answer with what ``profile: auto`` means now for each device.  May build profiles: seconds."""
    return answer.model_copy(update={"devices": tuple(_with_profile(each, store) for each in answer.devices)})


def _with_profile(measured: MeasuredDevice, store: Path) -> MeasuredDevice:
    profile = profile_of_device(load_device(measured.device), store) if measured.in_catalogue else None
    if profile is None:
        return measured
    return measured.model_copy(update={"profile_id": profile.profile_id, "num_points": profile.num_points})
