"""Profile files: arrays with a JSON head, named by their content hash; loaded without pickle.

``profile_id`` is SHA-256 over the head (canonical JSON) and all arrays (names, shapes, bytes).  Files are written whole
or not at all and are disposable: the store can build them again.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiles.document import canonical_json
from profiles.errors import DocumentInvalid
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.curve_table import CurveTable
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.roofline import Roofline

SUFFIX = ".profile.npz"
VERSION = 1
_CURVE_ARRAYS = ("sites", "axis", "log_util", "measured", "sigma_site", "sigma_bracket", "sigma_hole")
_HEAD = "head"

Arrays = dict[str, NDArray[Any]]


def identified(profile: Profile) -> Profile:
    """The profile with its ``profile_id`` filled in."""
    head, arrays = _parts(profile)
    digest = hashlib.sha256(canonical_json(head).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    profile.profile_id = digest.hexdigest()
    return profile


def save(profile: Profile, folder: Path) -> Path:
    """Write the profile into ``folder`` under its id; an existing file of that id is the same."""
    path = folder / f"{profile.profile_id}{SUFFIX}"
    if path.exists():
        return path
    head, arrays = _parts(profile)
    buffer = io.BytesIO()
    np.savez(buffer, **{_HEAD: np.frombuffer(canonical_json(head).encode(), dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(buffer.getvalue())
    partial.replace(path)
    return path


def load(path: Path) -> Profile:
    """The profile of a file.  Raises DocumentInvalid when it is damaged or not what its name says."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        head = json.loads(arrays.pop(_HEAD).tobytes())
        profile = identified(_assembled(head, arrays))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DocumentInvalid(
            f"the profile file is damaged: {error}", where=str(path), hint="delete it; it is built again when needed"
        ) from None
    if not path.name.startswith(profile.profile_id):
        raise DocumentInvalid(
            "the profile's content is not what its name says", where=str(path), hint="delete it; it is built again"
        )
    return profile


def _parts(profile: Profile) -> tuple[dict[str, Any], Arrays]:
    arrays: Arrays = {}
    operators: list[dict[str, Any]] = []
    for index, (key, table) in enumerate(sorted(profile.operators.items(), key=lambda item: item[0])):
        for name in _CURVE_ARRAYS:
            arrays[f"operator_{index}_{name}"] = getattr(table.curves, name)
        roof = table.roofline
        operators.append(
            {
                "key": list(key),
                "roofline": [roof.flops_per_s, roof.bytes_per_s, roof.width_bytes],
                "sigma_exact": table.curves.sigma_exact,
                "origin": table.origin.model_dump(mode="json"),
            }
        )
    collectives: list[dict[str, Any]] = []
    for index, (group, curve) in enumerate(sorted(profile.collectives.items(), key=lambda item: item[0])):
        arrays[f"collective_{index}"] = np.stack([curve.sizes, curve.times_s])
        collectives.append(
            {
                "key": [group.operation, group.group_size, group.num_nodes, group.concurrent],
                "sigma": [curve.sigma_between, curve.sigma_exact],
            }
        )
    head = {
        "version": VERSION,
        "device": profile.device,
        "operators": operators,
        "collectives": collectives,
        "collective_origins": [origin.model_dump(mode="json") for origin in profile.collective_origins],
    }
    return head, arrays


def _assembled(head: dict[str, Any], arrays: Arrays) -> Profile:
    if head["version"] != VERSION:
        raise ValueError(f"version {head['version']} of the file is not version {VERSION}")
    profile = Profile(str(head["device"]))
    for index, part in enumerate(head["operators"]):
        fields: dict[str, Any] = {name: arrays[f"operator_{index}_{name}"] for name in _CURVE_ARRAYS}
        curves = CurveTable(sigma_exact=float(part["sigma_exact"]), **fields)
        operator, dtype, variant = part["key"]
        table = OperatorTable(curves, Roofline(*part["roofline"]), TableOrigin.model_validate(part["origin"]))
        profile.operators[operator, dtype, variant] = table
    for index, part in enumerate(head["collectives"]):
        sizes, times = arrays[f"collective_{index}"]
        profile.collectives[CollectiveKey(*part["key"])] = CollectiveCurve(sizes, times, *part["sigma"])
    profile.collective_origins = tuple(TableOrigin.model_validate(each) for each in head["collective_origins"])
    return profile
