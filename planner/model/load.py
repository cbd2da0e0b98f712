"""Loading the model that the user names.

A reference is a built-in name, a ``config.json`` of Hugging Face (or the folder that holds one; of a diffusers pipeline
the one in ``transformer/``), a Megatron-LM launch script or argument file (``.sh``, ``.args``, ``.txt``), our model
YAML, or a saved ``ModelSpec``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.model.builtin import builtin_model, builtin_models
from planner.model.diffusers_config import is_diffusers_config, model_from_diffusers_config
from planner.model.hf_config import model_from_hf_config
from planner.model.model_yaml import model_from_description
from planner.model.spec import ModelSpec
from profiles.errors import DocumentInvalid, NotFound
from profiles.safe_yaml import load_document_file
from profiles.spelling import typing_slip
from profiles.text_limits import check_size
from profiles.validation import read_document

_SCRIPT_SUFFIXES = frozenset({".sh", ".args", ".txt", ".bash", ".slurm", ".sbatch"})
_DOCUMENT_SUFFIXES = frozenset({".json", ".yaml", ".yml"})


def is_model_path(reference: str) -> bool:
    """Whether the reference looks like a path: a slash or a known suffix."""
    return "/" in reference or Path(reference).suffix.lower() in _SCRIPT_SUFFIXES | _DOCUMENT_SUFFIXES


def load_model(reference: str) -> ModelSpec:
    """Read the model that ``reference`` names.

    A built-in name wins unless the reference looks like a path (a slash or a known suffix).
    Raises ``NotFound`` (unknown name or file, with the name meant) and ``DocumentInvalid`` (all findings at once).
    """
    path = Path(reference)
    looks_like_path = is_model_path(reference)
    if not looks_like_path and reference.strip().lower() in builtin_models():
        return builtin_model(reference)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_folder = exists = False
    if is_folder:
        inside = path / "transformer" / "config.json"  # a pipeline of diffusers: model_index.json names its models
        path = inside if inside.is_file() and (path / "model_index.json").is_file() else path / "config.json"
        if not path.is_file():
            raise NotFound(f"{reference} holds no config.json", where=reference, hint="name the file itself")
        return read_model_file(path)
    if exists:
        return read_model_file(path)
    if looks_like_path:
        raise NotFound(f"there is no file {reference}", where=reference, hint="check the path, or use a built-in name")
    raise _unknown(reference)


def read_model_file(path: Path) -> ModelSpec:
    """Read a model from an existing file of any supported kind."""
    if path.suffix.lower() in _SCRIPT_SUFFIXES:
        from planner.model.megatron_args import megatron_job

        return megatron_job(_read_text(path), path.stem, str(path)).model
    folder = path.resolve().parent
    folder = folder.parent if folder.name == "transformer" else folder
    name = folder.name if path.name == "config.json" else path.stem
    data = load_document_file(path, not_finite=True)
    if not _is_hf_config(data):  # Infinity is written into Hugging Face configs alone
        data = load_document_file(path)
    return model_from_data(data, name or "model", str(path))


def model_from_data(data: Any, name: str, where: str) -> ModelSpec:
    """Recognise plain data as a saved ``ModelSpec``, a Hugging Face config, or our model description."""
    if not isinstance(data, dict):
        raise DocumentInvalid("a model document must be a mapping", where=where, hint="see docs for the model YAML")
    if "layer_kinds" in data:
        return read_document(ModelSpec, data, where)
    if is_diffusers_config(data):
        return model_from_diffusers_config(data, name, where)
    if _is_hf_config(data):
        return model_from_hf_config(data, name, where)
    return model_from_description(data, name, where)


def _is_hf_config(data: object) -> bool:
    return isinstance(data, dict) and "layer_kinds" not in data and ("model_type" in data or "architectures" in data)


def _read_text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DocumentInvalid("the file is not UTF-8 text", where=str(path), hint="is it a launch script?") from None
    except OSError as error:
        raise DocumentInvalid(f"the file cannot be read: {error.strerror}", where=str(path)) from None
    check_size(text, str(path))
    return text


def _unknown(reference: str) -> NotFound:
    match = typing_slip(reference, builtin_models())
    hint = f"did you mean '{match}'?" if match else f"built-in models: {', '.join(builtin_models())}"
    return NotFound(
        f"there is no model '{reference[:200]}'",
        where="--model",
        hint=f"{hint} Or give the path of a config.json, a Megatron script or a model YAML",
    )
