"""Writes what Megatron-Bridge's performance recipes switch on: ``python -m benchmarks.bridge_recipes GIT_DIR FILE``.

``GIT_DIR``: a clone of NVIDIA-NeMo/Megatron-Bridge with its tags.  Each release's
``scripts/performance/configs/*/*workload_base_configs.py`` is a list of dataclasses, which is run with a stand-in for
the module that declares them; v0.1.0's are YAML and a script (scripts/performance/run_script.py:54-117), and stand in
``EARLY``.  ``planner/evidence/runs/bridge_recipes.jsonl`` is such a file, of mixtures and hybrids.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import types
from collections import defaultdict
from pathlib import Path
from typing import Any

CONTAINERS = {
    "v0.2.0": "25.11",
    "v0.3.0": "26.02",
    "v0.3.1": "26.02.01",
    "v0.4.0": "26.04",
    "v0.4.2": "26.04.01",
    "v0.5.0": "26.06",
    "v0.5.1": "26.06.01",
}
CONFIGS = "scripts/performance/configs"
NAMED = re.compile(
    r"((?:DEEPSEEK|QWEN3_|GPT_OSS|NEMOTRON_3|NEMOTRONH|KIMI)\w*?)_(?:PRETRAIN_CONFIG_)?(GB300|GB200|B300|B200|H100)"
    r"_(BF16|FP8_CS|FP8_MX|FP8_SC|NVFP4)(?:_BASE_CONFIG|_V\d)"
)
DEGREES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size")
ALL, HOPPER = ("BF16", "FP8_CS", "FP8_MX"), ("BF16", "FP8_CS")
LAYER = {"graphs": ["layer"]}
EARLY: tuple[tuple[str, str, tuple[str, ...], tuple[int, int, int], int, dict[str, Any]], ...] = (
    ("DEEPSEEK_V3", "H100", HOPPER, (2, 8, 64), 8192,
     {"dispatcher": "deepep", "overlap": True, "recompute": ["mla_up_proj", "mlp"]}),
    ("DEEPSEEK_V3", "B200", ALL, (1, 16, 8), 2048, {"recompute": ["mla_up_proj"]}),
    ("DEEPSEEK_V3", "GB200", ALL, (1, 4, 64), 2048, {"recompute": ["mla_up_proj"]}),
    ("QWEN3_235B_A22B", "H100", HOPPER, (2, 8, 32), 2048, {}),
    ("QWEN3_235B_A22B", "B200", ALL, (1, 8, 8), 1024, {}),
    ("QWEN3_235B_A22B", "GB200", ALL, (1, 8, 8), 1024, LAYER),
    ("QWEN3_30B_A3B", "H100", HOPPER, (1, 2, 8), 512, {}),
    ("QWEN3_30B_A3B", "GB200", ALL, (1, 1, 8), 512, LAYER),
    ("QWEN3_30B_A3B", "B200", ALL, (1, 1, 8), 512, LAYER),
)  # fmt: skip
"""Model, device, precisions, (tp, pp, ep), batch and switches of v0.1.0: container 25.09."""

Key = tuple[str, str, str, tuple[int, ...], int]
Found = dict[Key, dict[str, dict[str, Any]]]


def _says(config: dict[str, Any]) -> dict[str, Any]:
    scope, graphs = config.get("cuda_graph_scope"), config.get("cuda_graph_impl")
    says: dict[str, Any] = {}
    if config.get("moe_flex_dispatcher_backend"):
        says["dispatcher"] = config["moe_flex_dispatcher_backend"]
    if config.get("moe_a2a_overlap"):
        says["overlap"] = True
    if graphs == "full_iteration":
        says["graphs"] = [graphs]
    elif graphs not in (None, "none"):
        says["graphs"] = sorted([scope] if isinstance(scope, str) else scope or ())
    if config.get("recompute_modules"):
        says["recompute"] = sorted(config["recompute_modules"])
    return says


def _git(clone: str, *words: str) -> str:
    return subprocess.run(["git", "--git-dir", clone, *words], check=True, capture_output=True, text=True).stdout


def _of_release(clone: str, tag: str, found: Found) -> None:
    source = _git(clone, "show", f"{tag}:scripts/performance/utils/utils.py")
    start = source.index("@dataclass\nclass WorkloadBaseConfig:")
    declared: dict[str, Any] = {}
    end = source.index("\n\n\n", start)
    exec("from dataclasses import dataclass\nfrom typing import *\n" + source[start:end], declared)  # see above
    kind = declared["WorkloadBaseConfig"]
    stand_in = types.ModuleType("utils.utils")
    stand_in.WorkloadBaseConfig = kind  # type: ignore[attr-defined]  # what the lists import
    sys.modules |= {"utils": types.ModuleType("utils"), "utils.utils": stand_in}
    for path in _git(clone, "ls-tree", "-r", "--name-only", tag, CONFIGS).split():
        if not path.endswith("workload_base_configs.py"):
            continue
        listed: dict[str, Any] = {}
        exec(_git(clone, "show", f"{tag}:{path}"), listed)  # see above
        for name, value in listed.items():
            words = NAMED.fullmatch(name)
            if words is None or not isinstance(value, kind) or "VL" in words[1]:
                continue
            config = dataclasses.asdict(value)
            if config.get("use_megatron_fsdp"):
                continue
            degrees = tuple(config[degree] for degree in DEGREES)
            key = (words[1], words[2], words[3], degrees, config["global_batch_size"])
            found.setdefault(key, {})[CONTAINERS[tag]] = _says(config)


def lines(found: Found) -> list[dict[str, Any]]:
    """One line for what precisions, releases and batches have in common."""
    batches: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for (model, device, precision, degrees, batch), releases in sorted(found.items()):
        by_words: dict[str, list[str]] = defaultdict(list)
        for release, says in releases.items():
            by_words[json.dumps(says, sort_keys=True)].append(release)
        for words, same in by_words.items():
            batches[model, device, precision, degrees, words, tuple(same)].append(batch)
    precisions: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for (model, device, precision, degrees, words, same), sizes in batches.items():
        precisions[model, device, same, words, degrees, tuple(sizes)].append(precision.lower())
    return [
        {
            "model": model.lower().replace("_", "-"),
            "device": device,
            "precision": names,
            "releases": list(same),
            "degrees": list(degrees),
            "batch": list(sizes),
            "says": json.loads(words),
        }
        for (model, device, same, words, degrees, sizes), names in sorted(precisions.items())
    ]


def main(clone: str, target: str) -> None:
    """Write the file."""
    found: Found = {}
    for model, device, names, degrees, batch, says in EARLY:
        for precision in names:
            found.setdefault((model, device, precision, degrees, batch), {})["25.09"] = says
    for tag in CONTAINERS:
        _of_release(clone, tag, found)
    Path(target).write_text("".join(json.dumps(line) + "\n" for line in lines(found)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
