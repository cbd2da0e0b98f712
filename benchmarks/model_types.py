"""Our parameter count of every ``model_type`` of the pinned ``transformers`` against the module that it builds.

    python -m benchmarks.model_types [TYPE ...]     survey (all types without names); writes tables/model-types.json
    python -m benchmarks.model_types --defaults     writes planner/model/hf_config/class_defaults.json

The judge is the class itself, built on the meta device in a process of its own with a time limit: with its default
config, with a small one (other layers, heads, key-value heads, widths, experts), and from there with one key changed
at a time.  A type is *exact* where all counts agree to the last parameter; a changed config that our reader refuses is
counted apart, for a refusal is no wrong plan.  FLOPs: one forward pass under ``torch.utils.flop_counter``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.model_type_cases import judged
from benchmarks.model_type_values import CHANGES, SMALL

RESULT = Path(__file__).parent / "tables" / "model-types.json"
DEFAULTS = Path(__file__).parents[1] / "planner" / "model" / "hf_config" / "class_defaults.json"
TIME_LIMIT_S = 120.0
_ALONE = (
    "blip",
    "blip_2_qformer",
    "blip_text_model",
    "blip_vision_model",
    "idefics",
    "idefics_vision",
    "kyutai_speech_to_text",
    "mimi",
    "mllama_text_model",
    "mllama_vision_model",
    "moshi",
    "pp_formulanet",
)
"""Types with importers of their own, and parts of theirs, in no table of families."""
CLASSES = ("causal_lm", "image_text", "multimodal", "encoder_decoder")


def classes_by_type() -> dict[str, tuple[str, str]]:
    """``model_type`` -> (kind, class name): the widest class that trains as a language model."""
    from transformers.models.auto import modeling_auto as auto

    mappings = {
        "image_text": auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        "multimodal": auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        "encoder_decoder": auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        "causal_lm": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    }
    # The language model of Whisper has no encoder; the class that trains is in the mapping of speech models.
    found: dict[str, tuple[str, str]] = {"whisper": ("encoder_decoder", "WhisperForConditionalGeneration")}
    for kind, mapping in mappings.items():
        for model_type, name in mapping.items():
            found.setdefault(model_type, (kind, str(name)))
    return dict(sorted(found.items()))


def in_a_process(work: Any, *arguments: Any, limit_s: float = TIME_LIMIT_S) -> dict[str, Any]:
    """What ``work`` gives, computed in a forked process that is ended after the limit."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        theirs.send(work(*arguments))

    process = context.Process(target=run)
    process.start()
    theirs.close()
    answer: dict[str, Any] = {"verdict": "not judged", "reason": f"no answer in {limit_s:.0f} s"}
    if ours.poll(limit_s):
        try:
            answer = ours.recv()
        except EOFError:
            answer = {"verdict": "not judged", "reason": "the process that built the module ended"}
    process.kill()
    process.join()
    return answer


def survey(names: list[str]) -> dict[str, Any]:
    """The verdict of every named type (all without names)."""
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    known = classes_by_type()
    types = {}
    for model_type in names or known:
        kind, class_name = known[model_type]
        types[model_type] = {"kind": kind, "class": class_name, **in_a_process(judged, model_type, class_name)}
        print(model_type, types[model_type]["verdict"], types[model_type].get("reason", ""), file=sys.stderr)
    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "small": SMALL,
        "changed": sorted(CHANGES),
        "types": types,
    }


def class_defaults() -> dict[str, Any]:
    """Defaults and aliases of the config classes of every family in the tables."""
    import dataclasses

    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from planner.model.hf_config.audio_models import AUDIO_MODELS
    from planner.model.hf_config.bart_family import BARTS
    from planner.model.hf_config.bert_family import BERTS
    from planner.model.hf_config.crossed_towers import FORMULA_PARTS
    from planner.model.hf_config.registry import JOINED_PARTS
    from planner.model.hf_config.t5_family import T5S
    from planner.model.hf_config.tables import TABLES
    from planner.model.hf_config.tables.images import IMAGE_MODELS
    from planner.model.hf_config.tables.nested import NESTED
    from planner.model.hf_config.vision_models import VISION_MODELS

    encoders = {each.encoder for each in AUDIO_MODELS.values()}
    audio = {*_ALONE, *FORMULA_PARTS, *AUDIO_MODELS, *encoders}
    others = ("falcon", "nemotron_h", "gpt_bigcode", "gpt_neox_japanese", "modernbert-decoder", "whisper")
    tables = (TABLES, NESTED, VISION_MODELS, BERTS, BARTS, T5S, others, JOINED_PARTS, audio, ("t5_gemma_module",))
    towers = image_part_types() | {FORMULA_PARTS[1]}
    types = {}
    for model_type in sorted({name for table in (*tables, IMAGE_MODELS, towers) for name in table}):
        known = CONFIG_MAPPING[model_type]
        base = {field.name for field in dataclasses.fields(transformers.PreTrainedConfig)}
        fields = {field.name: field.default for field in dataclasses.fields(known)}
        plain = {
            key: value
            for key, value in fields.items()
            if (key not in base or key == "tie_word_embeddings")
            and (value is None or isinstance(value, (bool, int, float, str)))
            and not key.endswith(("_token_id", "dropout", "_range"))
        }
        rope = getattr(known(), "rope_parameters", None) or {}
        rope = rope.get("full_attention", rope) or rope.get("sliding_attention") or {}
        for key in ("rope_theta", "partial_rotary_factor"):
            if rope.get(key) is not None:
                plain.setdefault(key, rope[key])
        aliases = {name: key for name, key in known.attribute_map.items() if key in plain}
        # Keys that the file holds under another name than the class's own field.
        aliases |= {key: name for name, key in known.attribute_map.items() if name in plain and key not in plain}
        if model_type in towers:
            plain |= _listed(known(), base)
        types[model_type] = {"defaults": dict(sorted(plain.items())), "aliases": dict(sorted(aliases.items()))}
        if model_type in IMAGE_MODELS:
            types[model_type]["absent"] = _absent(known(), base)
    return {"source": f"transformers {transformers.__version__}", "types": types}


def image_part_types() -> set[str]:
    """``model_type`` of the parts beside the language model of the families in the table of image models."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from planner.model.hf_config.tables.images import IMAGE_MODELS
    from planner.model.hf_config.tables.later_images import OPTIONAL_PARTS

    def within(config: Any) -> set[str]:
        found = set()
        for holder in getattr(config, "sub_configs", {}):
            part = getattr(config, holder, None)
            if part is not None and holder != "text_config":
                found |= {part.model_type} | within(part)
        return found

    return {kind for family in IMAGE_MODELS for kind in within(CONFIG_MAPPING[family]()) if kind} | OPTIONAL_PARTS


def _listed(config: Any, base: set[str]) -> dict[str, Any]:
    """Keys whose default is a list of integers."""
    return {
        key: list(value)
        for key, value in vars(config).items()
        if key not in base
        and isinstance(value, (list, tuple))
        and value
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    }


def _absent(config: Any, base: set[str]) -> dict[str, Any]:
    """What each part is where the config holds none: its type and the keys that are not its class's defaults."""
    found = {}
    for holder in getattr(config, "sub_configs", {}):
        part = getattr(config, holder, None)
        if part is None:
            continue
        own = type(part)().to_dict()
        changed = {
            key: value
            for key, value in part.to_dict().items()
            if key not in base
            and (value is None or isinstance(value, (bool, int, float, str)))
            and (key not in own or own[key] != value)
        }
        found[holder] = {"model_type": part.model_type, **dict(sorted(changed.items()))}
    return dict(sorted(found.items()))


def main() -> int:
    """Survey, or write the defaults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("types", nargs="*")
    parser.add_argument("--defaults", action="store_true")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if asked.defaults:
        DEFAULTS.write_text(json.dumps(class_defaults(), indent=1) + "\n", encoding="utf-8")
        return 0
    found = survey(asked.types)
    if asked.types and RESULT.exists():
        before = json.loads(RESULT.read_text(encoding="utf-8"))
        found["types"] = dict(sorted((before["types"] | found["types"]).items()))
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
