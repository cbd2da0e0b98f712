"""The folder of calibrations: one JSON file each, ``<profiles>/calibrations/<id>.json``, beside the profiles."""

from __future__ import annotations

from pathlib import Path

from planner.evidence.calibration.document import Calibration
from profiles.errors import DocumentInvalid, NotFound
from profiles.observation_store.address import profiles_folder
from profiles.safe_json import load_json_text
from profiles.validation import read_document

FOLDER = "calibrations"
LARGEST_BYTES = 16 * 1024 * 1024


def calibrations_folder(profiles: str | None = None) -> Path:
    """The folder, whether it exists or not."""
    return profiles_folder(profiles) / FOLDER


def calibration_text(calibration: Calibration) -> str:
    """The file of a calibration."""
    return calibration.model_dump_json(indent=1) + "\n"


def keep(calibration: Calibration, folder: Path) -> tuple[Path, bool]:
    """Store a calibration; its file, and whether it is new.  The first one of an id stays.  Raises DocumentInvalid."""
    path = folder / f"{calibration.calibration_id}.json"
    if path.exists():
        return path, False
    partial = path.with_name(f".{path.name}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(calibration_text(calibration), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DocumentInvalid(
            f"cannot store the calibration: {reason}", where=str(folder), hint="give another folder with --profiles"
        ) from None
    return path, True


def stored_calibrations(folder: Path) -> list[Calibration]:
    """Every stored calibration, oldest first.  Raises DocumentInvalid for a damaged one."""
    found = [read_calibration(path) for path in folder.glob("*.json") if not path.name.startswith(".")]
    return sorted(found, key=lambda each: (each.created_at, each.calibration_id))


def find_calibration(prefix: str, folder: Path) -> Calibration:
    """The stored calibration whose id begins with ``prefix``.  Raises NotFound."""
    usable = prefix and all(character in "0123456789abcdef" for character in prefix)
    found = sorted(folder.glob(f"{prefix}*.json")) if usable else []
    if len(found) != 1:
        what = (
            f"there is no calibration '{prefix}'" if not found else f"{len(found)} calibrations begin with '{prefix}'"
        )
        raise NotFound(
            what,
            where="--calibration",
            hint="`meshwright profile calibrate --list` shows the stored ones; or give a file",
        )
    return read_calibration(found[0])


def read_calibration(path: Path) -> Calibration:
    """A calibration from its file.  Raises NotFound, DocumentInvalid."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise DocumentInvalid("too large for a calibration", where=str(path), hint="give a calibration's JSON file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(
            "no such file", where=str(path), hint="give a file that `profile calibrate --out` wrote"
        ) from None
    except (OSError, ValueError) as error:
        raise DocumentInvalid(
            f"cannot read the file: {error}", where=str(path), hint="give a calibration's JSON file"
        ) from None
    return read_document(Calibration, load_json_text(text, str(path)), str(path))
