"""Runs MaxText's own config parser (pyconfig, types) and its mesh arithmetic on a config; starts no device.

The parser is asked as for ahead-of-time compilation (``internal_compile``): it then takes the number of devices as
given.  ``orbax`` and ``pathwaysutils`` are replaced by empty modules, see ``planner/backends/maxtext/validator.py``.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import os
import sys
import tempfile
import types
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

EMPTY_MODULES = ("orbax", "pathwaysutils")


class _Anything(type):
    """A class whose every attribute is such a class: enough for annotations at import time."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _EmptyModules(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        empty = fullname.partition(".")[0] in EMPTY_MODULES
        return ModuleSpec(fullname, self, is_package=True) if empty else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = _Anything.__getattr__.__get__(_Anything("module", (), {}))  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


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


def verdict(config: str, devices: int) -> dict[str, Any]:
    """Parse with every check of the release, then hold the degrees against slices and devices of a slice."""
    pyconfig, max_utils = import_module("maxtext.configs.pyconfig"), import_module("maxtext.utils.max_utils")
    if pyconfig._load_config.__name__ != "remembered":
        _read_once(pyconfig)
    stage = "config"
    asked = ["skip_jax_distributed_system=true", "internal_compile=true", f"internal_compile_num_devices={devices}"]
    asked += ["run_name=check", "base_output_directory=/tmp/check", "log_config=false"]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        file.write(config)
        file.flush()
        try:
            parsed = pyconfig._initialize_pydantic(["", file.name, *asked])
            stage = "mesh"
            slices = parsed.num_slices
            ici = max_utils.fill_unspecified_mesh_axes(list(parsed.ici_parallelism), devices // slices, "ICI")
            dcn = max_utils.fill_unspecified_mesh_axes(list(parsed.dcn_parallelism), slices, "DCN")
        except (ValueError, AssertionError, TypeError, KeyError, NotImplementedError) as error:
            return {"accepted": False, "stage": stage, "message": " ".join(str(error).split())[:2000]}
    facts = {
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
    return {"accepted": True, "stage": "ok", "message": "", "facts": facts}


def main(overlay: str) -> None:
    """Serve requests until stdin ends."""
    sys.path.insert(0, overlay)
    sys.meta_path.insert(0, _EmptyModules())
    # A user's own flags and M_* overrides must not decide what a file means.
    for name in [name for name in os.environ if name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") or name.startswith("M_")]:
        del os.environ[name]
    os.environ["JAX_PLATFORMS"] = "cpu"
    logging.disable(logging.CRITICAL)
    answers = sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        with contextlib.redirect_stdout(io.StringIO()):
            answer = verdict(request["config"], request["devices"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
