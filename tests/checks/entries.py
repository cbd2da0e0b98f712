"""One entry of the kept builds: a folder with the files and a list of them, made whole before it gets its name.

``files.json`` says where the files were built and holds a digest of names, sizes and times of change.  An entry whose
files do not answer to it (a cleaner was there, a linked file was written to) is removed, never used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

_LIST = "files.json"
_FILES = "files"


class Damaged(Exception):
    """An entry that is not what was kept."""


def keep(entry: Path, root: Path, built: Sequence[str], own: Sequence[str], *, linked: bool) -> None:
    """Keep what the patterns name below ``root``.  Whole or not at all; an entry of this name is replaced."""
    paths = [each for each in _found(root, built) if not any(fnmatchcase(each, pattern) for pattern in own)]
    staging = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", dir=entry.parent))
    try:
        for each in paths:
            _place(root / each, staging / _FILES / each, linked=linked)
        listed = {"origin": str(root), "built": list(built), "digest": _digest(staging / _FILES, paths), "paths": paths}
        (staging / _LIST).write_text(json.dumps(listed), encoding="utf-8")
        _remove(entry)
        staging.rename(entry)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def restore(entry: Path, root: Path, *, linked: bool) -> bool:
    """Put an entry's files below ``root``; gives whether there was one.  Raises Damaged, the entry is gone then."""
    try:
        listed = json.loads((entry / _LIST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        _remove(entry)
        raise Damaged(f"its list cannot be read ({error})") from error
    paths: list[str] = listed["paths"]
    try:
        if _digest(entry / _FILES, paths) != listed["digest"]:
            raise Damaged("its files are not what was kept")
        _clear(root, listed["built"])
        for each in paths:
            target = root / each
            _place(entry / _FILES / each, target, linked=linked)
            if listed["origin"] != str(root) and _names_its_place(each):
                _move(target, listed["origin"], str(root))
    except FileNotFoundError as error:
        _remove(entry)
        raise Damaged(f"{error.filename} is missing") from error
    except Damaged:
        _remove(entry)
        raise
    os.utime(entry)
    return True


def remove_old(entry: Path, left: int) -> None:
    """Free the place of entries of the same kind but the last used; clones that took them keep their files."""
    kind = entry.name.rpartition("-")[0]
    found: list[tuple[float, Path]] = []
    for each in entry.parent.glob(f"{kind}-*"):
        with contextlib.suppress(FileNotFoundError):
            found.append((each.stat().st_mtime, each))
    for _, path in sorted(found, reverse=True)[left:]:
        _remove(path)


def _found(root: Path, patterns: Sequence[str]) -> list[str]:
    """Files and links below ``root``, sorted; a pattern that ends in ``/**`` is a folder with all that is in it."""
    found: list[str] = []
    for pattern in patterns:
        if pattern.endswith("/**"):
            found += _all_below(root, pattern.removesuffix("/**"))
        else:
            found += [str(each.relative_to(root)) for each in root.glob(pattern) if each.is_file()]
    return sorted(found)


def _all_below(root: Path, folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(root / folder):
        here = os.path.relpath(place, root)
        # A link to a folder is kept as a link.
        links = [each for each in folders if os.path.islink(os.path.join(place, each))]
        yield from (os.path.join(here, each) for each in (*files, *links))


def _digest(folder: Path, paths: Sequence[str]) -> str:
    found = hashlib.sha256()
    for each in paths:
        status = os.lstat(folder / each)
        # A link's own time is not carried by a copy.
        time_ns = 0 if os.path.islink(folder / each) else status.st_mtime_ns
        found.update(f"{each}\0{status.st_size}\0{time_ns}\n".encode())
    return found.hexdigest()


def _place(source: Path, target: Path, *, linked: bool) -> None:
    """The same file at another place: a link where the file system can, else a copy with its time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        os.symlink(os.readlink(source), target)
        return
    if linked:
        try:
            os.link(source, target)
            return
        except OSError as error:
            # Another file system, or one without links, or a file with too many of them.
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                raise
    shutil.copy2(source, target)


def _names_its_place(path: str) -> bool:
    """Whether a file may name the folder that it was installed in: scripts, and what says which Python it is."""
    return Path(path).parent.name == "bin" or Path(path).name == "pyvenv.cfg"


def _move(path: Path, old: str, new: str) -> None:
    """Rewrite the place in a script; a new file, because the old one may be linked to what is kept."""
    if path.is_symlink():
        return
    content = path.read_bytes()
    if b"\0" in content[:1024] or old.encode() not in content:
        return
    status = path.stat()
    path.unlink()
    path.write_bytes(content.replace(f"{old}/".encode(), f"{new}/".encode()))
    path.chmod(status.st_mode)


def _clear(root: Path, built: Sequence[str]) -> None:
    """Make room: what an earlier build left in whole folders, and files of the same names."""
    for pattern in built:
        if pattern.endswith("/**"):
            _remove(root / pattern.removesuffix("/**"))
        else:
            for each in root.glob(pattern):
                each.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove a folder; what is left of it if that is cut short has no entry's name."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    if path.exists():
        away = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        path.rename(away / path.name)
        shutil.rmtree(away, ignore_errors=True)
