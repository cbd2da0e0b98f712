"""The MaxText release that the files are for, and the names of the files."""

from __future__ import annotations

MAXTEXT_VERSION = "0.2.5"
TYPES = f"maxtext {MAXTEXT_VERSION} configs/types.py"
"""Where the release checks a config: one pydantic model over all keys."""

CONFIG_FILE = "maxtext.yml"
"""Must end in ``.yml``: MaxText takes any other first argument for a key=value pair (configs/pyconfig.py:97)."""
TRAIN_SCRIPT = "train.sh"
TRAIN_MODULE = "maxtext.trainers.pre_train.train"
