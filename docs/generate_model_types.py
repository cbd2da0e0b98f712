"""Which model types are read, and how exactly: the page of ``benchmarks/tables/model-types.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docs.generate import page, table

RESULT = Path(__file__).parents[1] / "benchmarks" / "tables" / "model-types.json"
_KINDS = {
    "causal_lm": "causal language model",
    "image_text": "image and text",
    "multimodal": "several modalities",
    "encoder_decoder": "encoder-decoder or audio",
}
_VERDICTS = ("exact", "off", "refused", "not built", "not judged")


def model_types_page() -> str:
    """Counts by kind of model, every type that is read, and every refusal with its reason."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    types: dict[str, dict[str, Any]] = found["types"]
    read = [(name, each) for name, each in types.items() if each["verdict"] in ("exact", "off")]
    rest = [(name, each) for name, each in types.items() if each["verdict"] not in ("exact", "off")]
    unbuilt = sum("not_built" in each for _, each in rest)
    exact = sum(each["verdict"] == "exact" for each in types.values())
    with_flops = [each["flops"] for _, each in read if each.get("flops")]
    near = sum(abs(ratio - 1) <= 0.005 for ratio in with_flops)
    return page(
        "Model types",
        f"Of the {len(types)} model types for which transformers {found['transformers']} has a language model,"
        f" {exact} are read exactly (surveyed on {found['date']}): our parameter count equals that of the module, built"
        " on the meta device, to the last parameter, with the default config (where its parts fit each other), with a"
        " small one, and with that one changed key by key. The others are refused with a reason, never guessed."
        " `python -m benchmarks.model_types` repeats the survey.",
        table(("kind", *(f">{verdict}" for verdict in _VERDICTS)), _counts(types)),
        "## Read",
        "*Cases*: configs whose counts were compared. *Refused*: changed configs that the reader refuses, because the"
        " key asks for what is not modelled or the class itself ignores it. *FLOPs*: ours over torch's counter for one"
        f" forward pass of the small model, {near} of {len(with_flops)} within 0.5 %; empty where the class did not run"
        " or has a vision tower. llama4_text and nllb-moe differ because their classes compute as many rows of experts"
        " as there are experts and tokens.",
        table(("model type", "verdict", ">parameters, default config", ">cases", ">refused", ">FLOPs"), _read(read)),
        "## Refused",
        f"Of these {len(rest)} types the classes of {unbuilt} do not build with their default config either.",
        table(
            ("model type", "verdict", "reason"),
            [(f"`{name}`", each["verdict"], _mechanism(each)) for name, each in rest],
        ),
    )


def _mechanism(each: dict[str, Any]) -> str:
    """What the model has that is not modelled; the whole reason where it says something else."""
    reason = str(each["reason"])
    return reason.partition(" it has ")[2].partition(", which is not modelled")[0] or reason


def _counts(types: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    rows = []
    for kind, words in _KINDS.items():
        verdicts = [each["verdict"] for each in types.values() if each["kind"] == kind]
        rows.append((words, *(str(verdicts.count(verdict)) for verdict in _VERDICTS)))
    whole = [each["verdict"] for each in types.values()]
    return [*rows, ("all", *(str(whole.count(verdict)) for verdict in _VERDICTS))]


def _read(read: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, ...]]:
    return [
        (
            f"`{name}`",
            each["verdict"] if each["verdict"] == "exact" else each["reason"],
            f"{each['parameters']:,}" if each.get("parameters") else "",
            str(each.get("cases", "")),
            str(len(each.get("refused_cases", ()))),
            f"{each['flops']:.4f}" if each.get("flops") else "",
        )
        for name, each in read
    ]
