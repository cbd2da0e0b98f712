"""MaxText: checks that the release's own config parser and mesh arithmetic take ``maxtext.yml``.

The release wants Python 3.12 and JAX 0.11; its config package also runs on Python 3.11 with JAX 0.10.2, which is what
the overlay holds.  Checkpointing (orbax) and Pathways are not installed: the worker puts empty modules in their place,
and nothing of a config is decided there.
"""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.maxtext.mesh_axes import read_mesh
from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.version import CONFIG_FILE, MAXTEXT_VERSION
from planner.backends.rules.foreign_names import foreign_names

JAX_PACKAGES = ("jax==0.10.2", "jaxlib==0.10.2", "ml_dtypes==0.6.0", "opt_einsum==3.4.0")
CONFIG_PACKAGES = foreign_names(
    """
    flax==0.12.12 optax==0.2.8 msgpack==1.2.4 etils==1.15.0 treescope==0.1.10 psutil==7.2.2 omegaconf==2.4.0
    antlr4-python3-runtime==4.9.3 absl-py==2.5.1 jinja2==3.1.6 markupsafe==3.0.4
    """
)


def request(folder: EmittedFolder) -> Request:
    """The config's text and the number of devices that its mesh needs."""
    text = folder.files[CONFIG_FILE]
    split = read_mesh(parse_config(text))
    devices = split.num_slices
    for size in split.ici.values():
        devices *= size
    return {"config": text, "devices": devices, "environment": dict(folder.environment)}


VALIDATOR = Validator(
    name="maxtext",
    default_version=MAXTEXT_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "maxtext" and CONFIG_FILE in folder.files,
    request=request,
    packages=lambda version: (f"maxtext=={version}", *JAX_PACKAGES, *CONFIG_PACKAGES),
    base_modules=("numpy", "scipy", "pydantic", "yaml"),
)
