"""One ``model_type`` judged: the class on the meta device against what our reader makes of its ``config.json``."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

from benchmarks.model_type_flops import flops_ratio
from benchmarks.model_type_values import CHANGES, HOLDERS, LISTED, SMALL, part_of


def judged(model_type: str, class_name: str) -> dict[str, Any]:
    """The verdict of one type.  Never raises: what goes wrong is the verdict's reason."""
    from planner.model.hf_config.unmodelled import UNMODELLED

    warnings.simplefilter("ignore")
    if model_type in UNMODELLED:
        return refused(model_type, class_name)
    try:
        small, default = small_config(model_type, class_name)
    except Exception as error:
        return {"verdict": "not built", "reason": f"{type(error).__name__}: {str(error)[:160]}"}
    cases = [("small", small)] + ([("default", default)] if default is not None else [])
    known, read = compared(class_name, small)
    if isinstance(read, str):
        return {"verdict": "refused", "reason": read, "small_parameters": known}
    cases += changed_configs(small)
    counts: dict[str, Any] = {"cases": 0, "refused_cases": []}
    for label, config in cases:
        try:
            known, read = compared(class_name, config)
        except Exception:  # the class does not build this one: nothing to compare
            continue
        if isinstance(read, str):
            counts["refused_cases"].append(f"{label}: {read}"[:200])
        elif read != known:
            return {"verdict": "off", "by": read - known, "case": label, "reason": f"{label}: off by {read - known:,}"}
        else:
            counts["cases"] += 1
            if label == "default":
                counts["parameters"] = known
    return {"verdict": "exact", **counts, "flops": flops_ratio(class_name, small, written)}


def refused(model_type: str, class_name: str) -> dict[str, Any]:
    """What no table describes, and whether the class builds its default config (``traced_models`` traces it)."""
    from planner.model.hf_config.unmodelled import UNMODELLED

    reason = f"model_type {model_type!r} is not supported: it has {UNMODELLED[model_type]}, which is not modelled"
    try:
        known = sum(parameter.numel() for parameter in build(class_name, made(model_type, {})).parameters())
        return {"verdict": "refused", "reason": reason, "parameters": known}
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:120]}"
        return {"verdict": "refused", "reason": reason, "not_built": said}


def build(class_name: str, config: Any) -> Any:
    """The module on the meta device."""
    import torch
    import transformers

    model_class = getattr(transformers, class_name)
    with torch.device("meta"):
        return model_class._from_config(copy.deepcopy(config))


def written(config: Any) -> dict[str, Any]:
    """The ``config.json`` that ``save_pretrained`` writes."""
    read: dict[str, Any] = json.loads(config.to_json_string())
    return read


def compared(class_name: str, config: Any) -> tuple[int, int | str]:
    """The module's count, and ours or why our reader refuses the config."""
    from planner.model.hf_config import model_from_hf_config
    from planner.model.parameters import total_parameters
    from profiles.errors import MeshwrightError
    from profiles.validation import FindingsInvalid

    known = sum(parameter.numel() for parameter in build(class_name, config).parameters())
    try:
        return known, total_parameters(model_from_hf_config(written(config), "surveyed", "config.json"))
    except FindingsInvalid as error:
        return known, f"{error.findings[0].pointer.lstrip('/')}: {error.findings[0].what}"
    except MeshwrightError as error:
        return known, error.what


def made(model_type: str, changes: dict[str, Any]) -> Any:
    """The config class with keys changed; ``text_config.x`` reaches a nested one."""
    from transformers import AutoConfig

    top: dict[str, Any] = {}
    for path, value in changes.items():
        *holders, key = path.split(".")
        inner = top
        for depth, holder in enumerate(holders, 1):
            inner = inner.setdefault(holder, {"model_type": _nested_type(model_type, ".".join(holders[:depth]))})
        inner[key] = copy.deepcopy(value)  # a whole part that a later path changes
    return AutoConfig.for_model(model_type, **top)


def _nested_type(model_type: str, holder: str) -> str:
    from transformers import AutoConfig

    return str(part_of(AutoConfig.for_model(model_type), holder).model_type)


def small_config(model_type: str, class_name: str) -> tuple[Any, Any | None]:
    """A small config that builds (raises what the class raises if none does), and the default one if it builds."""
    default = made(model_type, {})
    try:
        build(class_name, default)
        builds = True
    except Exception:
        builds = False
    changes: dict[str, Any] = dict(LISTED.get(model_type, {}))
    wanted = _paths(default) | changes
    try:  # all at once, then key by key
        build(class_name, made(model_type, wanted))
        changes = wanted
    except Exception:
        for path, value in wanted.items():
            trial = {**changes, path: value}
            try:
                build(class_name, made(model_type, trial))
            except Exception:
                if builds:
                    continue
            changes = trial
    small = made(model_type, changes)
    small._survey = (model_type, changes)
    build(class_name, small)
    return small, default if builds else None


def _paths(config: Any) -> dict[str, Any]:
    holders = [("", config)] + [
        (f"{name}.", part_of(config, name)) for name in HOLDERS if getattr(part_of(config, name), "model_type", "")
    ]
    return {
        f"{prefix}{key}": value
        for prefix, holder in holders
        for key, value in SMALL.items()
        if _has(holder, key) and not (key == "vocab_size" and prefix in ("vision_config.", "audio_config."))
    }


def _has(holder: Any, key: str) -> bool:
    """Whether the config has the key; one that differs from layer to layer refuses to be asked for."""
    try:
        return hasattr(holder, key)
    except Exception:
        return True


def changed_configs(small: Any) -> list[tuple[str, Any]]:
    """The small config with one key changed."""
    model_type, changes = small._survey
    found = []
    for prefix, holder in [
        ("", small),
        *((f"{name}.", part_of(small, name)) for name in HOLDERS),
    ]:
        if holder is None:
            continue
        for key, value in holder.to_dict().items():
            others = CHANGES.get(key, [])
            if isinstance(value, bool) and key not in ("is_decoder", "is_encoder_decoder", "return_dict"):
                others = [not value]
            for other in others:
                try:
                    config = made(model_type, {**changes, f"{prefix}{key}": other})
                except Exception:
                    continue
                found.append((f"{prefix}{key}={other}", config))
    return found
