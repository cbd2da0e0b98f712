"""The folder of measurements: ``--profiles``, else ``$MESHWRIGHT_PROFILES``, else one in the data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from profiles.errors import DocumentInvalid

ENVIRONMENT_VARIABLE = "MESHWRIGHT_PROFILES"
BATCHES = "batches"
"""Folder of the batch records: empty or absent where nothing is stored."""


def profiles_folder(given: str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The folder, whether it exists or not.  A path or a ``file://`` URL.  Raises DocumentInvalid for other URLs."""
    variables = os.environ if environment is None else environment
    where = "--profiles" if given else f"${ENVIRONMENT_VARIABLE}"
    text = given or variables.get(ENVIRONMENT_VARIABLE) or ""
    if not text:
        return _data_folder(variables) / "profiles"
    if "\0" in text:
        raise DocumentInvalid("the path holds a zero byte", where=where, hint="give a plain path")
    if "://" not in text:
        return Path(text).expanduser().absolute()
    url = urlsplit(text)
    if url.scheme != "file" or url.netloc not in ("", "localhost") or not url.path:
        raise DocumentInvalid(
            f"{text!r} is not a folder on this machine",
            where=where,
            hint="measurements are kept in files: give a path or file:///path",
        )
    return Path(unquote(url.path))


def _data_folder(environment: Mapping[str, str]) -> Path:
    """``$XDG_DATA_HOME/meshwright``, beside the plan database; ``~/.local/share`` for an unset variable."""
    data_home = environment.get("XDG_DATA_HOME", "")
    # The XDG base directory specification: relative paths are to be ignored.
    if data_home.startswith("/"):
        return Path(data_home) / "meshwright"
    home = environment.get("HOME", "")
    return (Path(home) if home else Path.home()) / ".local" / "share" / "meshwright"
