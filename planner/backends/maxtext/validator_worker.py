"""Runs MaxText's own config parser (pyconfig, types) and its mesh arithmetic on a config; starts no device.

The parser is asked as for ahead-of-time compilation (``internal_compile``): it then takes the number of devices as
given.  ``orbax`` and ``pathwaysutils`` are replaced by empty modules, see ``planner/backends/maxtext/validator.py``.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import FeignedModules, NamedAll, serve

EMPTY_MODULES = ("orbax", "pathwaysutils")


def _read_once(pyconfig: Any) -> None:
    """Parsing the release's own base.yml takes most of the time; it is the same for every config."""
    loaded: dict[str, Any] = {}
    load = pyconfig._load_config

    def remembered(name: str) -> Any:
        if os.path.basename(name) != "base.yml":
            return load(name)
        if name not in loaded:
            loaded[name] = load(name)
        return copy.deepcopy(loaded[name])

    pyconfig._load_config = remembered


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Parse with every check of the release, then hold the degrees against slices and devices of a slice."""
    pyconfig, max_utils = import_module("maxtext.configs.pyconfig"), import_module("maxtext.utils.max_utils")
    if pyconfig._load_config.__name__ != "remembered":
        _read_once(pyconfig)
    devices = request["devices"]
    asked = ["skip_jax_distributed_system=true", "internal_compile=true", f"internal_compile_num_devices={devices}"]
    asked += ["run_name=check", "base_output_directory=/tmp/check", "log_config=false"]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        file.write(request["config"])
        file.flush()
        yield "config"
        parsed = pyconfig._initialize_pydantic(["", file.name, *asked])
    yield "mesh"
    slices = parsed.num_slices
    ici = max_utils.fill_unspecified_mesh_axes(list(parsed.ici_parallelism), devices // slices, "ICI")
    dcn = max_utils.fill_unspecified_mesh_axes(list(parsed.dcn_parallelism), slices, "DCN")
    facts |= {
        "mesh": {
            axis: [inside, across]
            for axis, inside, across in zip(parsed.mesh_axes, ici, dcn, strict=True)
            if inside * across > 1
        },
        "num_slices": slices,
        "global_batch_size": parsed.global_batch_size_to_train_on,
        "num_pipeline_microbatches": parsed.num_pipeline_microbatches if parsed.using_pipeline_parallelism else 0,
        "num_decoder_layers": parsed.num_decoder_layers,
        "kept_tensors": len(getattr(parsed, "tensors_on_device", None) or []),
        "offloaded_tensors": len(getattr(parsed, "tensors_to_offload", None) or []),
        "empty_modules": list(EMPTY_MODULES),
    }


def prepare(overlay: Path) -> None:
    """A user's own flags and M_* overrides must not decide what a file means."""
    for name in [name for name in os.environ if name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") or name.startswith("M_")]:
        del os.environ[name]
    os.environ["JAX_PLATFORMS"] = "cpu"
    FeignedModules(*EMPTY_MODULES, kind=NamedAll)


if __name__ == "__main__":
    serve(stages, prepare, said=lambda error: " ".join(str(error).split()))
