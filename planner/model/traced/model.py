"""A ``ModelSpec`` from the module that transformers builds of a config whose family has no table.

The trace runs in a process of its own, with a time limit: torch stays out of this one, and what a class does with a
config that nobody has seen cannot harm it.  The answer for a config is remembered while this process lives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from profiles.errors import DocumentInvalid
from profiles.validation import read_document

TIME_LIMIT_S = 600.0
"""Of the wall clock: a busy machine takes far longer than the ten seconds of processor time that most traces need."""
INSTALL = "pip install 'meshwright[torch]' 'transformers>=5'"
OWN_YAML = "describe the model in Meshwright's own model YAML"
_MODULE = "planner.model.traced.worker"


def traced_model(
    data: dict[str, Any], name: str, where: str, lacking: str = "", hint: str = OWN_YAML
) -> ModelSpec | None:
    """The traced model of a ``config.json``; None for a ``model_type`` that the installed transformers does not have.

    ``lacking``: what the family has that tables do not describe, and ``hint`` what else can be done, for the error.
    Raises DocumentInvalid where torch or transformers is missing (with the command that installs them), where the
    config brings code of its own, and where the module cannot be built, run or described, each with the reason.
    """
    kind = str(data["model_type"])
    has = f" (it has {lacking})" if lacking else ""
    said, at = f"model_type {kind[:80]!r} has no table of its own{has}", f"{where}#/model_type"
    missing = [package for package in ("torch", "transformers") if find_spec(package) is None]
    if missing:
        if not lacking:
            return None
        what = f"{said}; such a model is traced from its module, for which {' and '.join(missing)} must be installed"
        raise DocumentInvalid(what, where=at, hint=f"{INSTALL}; or {hint}")
    if not _may_know(kind):
        return None
    if data.get("auto_map"):
        what = f"{said}, and the config names code of its own (auto_map), which is never run"
        raise DocumentInvalid(what, where=at, hint=f"leave auto_map out if transformers' own class is meant; or {hint}")
    answer = json.loads(_asked(json.dumps(data, sort_keys=True)))
    if "error" in answer:
        raise DocumentInvalid(f"{said} and cannot be traced: {answer['error']}", where=at, hint=hint)
    return model_of_parts(answer["spec"], data, name, where)


def how_to_trace() -> str:
    """The end of a hint about an unknown ``model_type``: what to install, where that is missing."""
    if find_spec("torch") is not None and find_spec("transformers") is not None:
        return ""
    return f". A family of transformers without a table is traced from its module: {INSTALL}"


def _may_know(kind: str) -> bool:
    """Whether the installed transformers may have the type: its list of types is read as text, without an import."""
    found = find_spec("transformers")
    folder = Path(found.origin).parent / "models" / "auto" if found is not None and found.origin else None
    return folder is not None and any(f'"{kind}"' in file.read_text(encoding="utf-8") for file in folder.glob("*.py"))


@lru_cache(maxsize=16)
def _asked(config: str) -> str:
    """What the worker answers.  A worker that ends without an answer is an error of the config, too."""
    folders = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": folders, "TRANSFORMERS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", _MODULE],
            input=config,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return json.dumps({"error": f"no trace in {TIME_LIMIT_S:.0f} s"})
    if done.returncode or not done.stdout:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return json.dumps({"error": f"the process that traces ended with {done.returncode} ({last[:200]})"})
    return done.stdout


def model_of_parts(parts: dict[str, Any], data: dict[str, Any], name: str, where: str) -> ModelSpec:
    """The model of a worker's answer; the trace must count as many parameters as the module has."""
    kinds = [
        {"attention": {"kind": "traced", "operators": operators}, "num_norms": 0} for operators in parts.pop("kinds")
    ]
    total = parts.pop("total_parameters")
    document = {
        "name": name,
        "family": data["model_type"],
        "layer_kinds": kinds,
        "layer_runs": parts.pop("runs"),
        "position": "none",
        "final_norm": False,
        **parts,
    }
    document["traced"] |= {"config": json.dumps(data, sort_keys=True)}
    spec = read_document(ModelSpec, document, where)
    if total_parameters(spec) != total:
        raise DocumentInvalid(
            f"the trace counts {total_parameters(spec):,} parameters, its module has {total:,}", where=where
        )
    return spec
