"""Public launch scripts of Megatron-LM, read and compared: ``python -m benchmarks.launch_scripts TRUTH.json MIRRORS``.

``TRUTH.json``: records with ``id, repo, path, commit, needs`` and the fields that a person reads in the script
(``expected``, and ``accept``: other values that are as right).  ``MIRRORS``: a folder of bare repositories, each as
``owner+name/repo``; the texts are read from there with git and are no part of this repository.  One line a script:
right, the fields that differ, or what was asked for; then the number of right ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import DocumentInvalid
from planner.model.megatron_args import MegatronJob, megatron_job
from planner.model.megatron_strategy import with_what_is_off
from planner.model.shell.launches import Given
from planner.strategy.relief_layers import policies
from planner.strategy.text import complete_strategy
from profiles.validation import FindingsInvalid

VOCABULARY = 128_000
"""For scripts whose tokenizer is not told; the truth says nothing of their vocabulary."""
MODULES = {"attention_core": "core_attn", "norm": "layernorm", "mlp": "mlp", "moe": "moe", "activation": "moe_act"}


def main() -> int:
    """Print a line a script, then how many are right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch_scripts")
    parser.add_argument("truth", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--backend", default="megatron")
    options = parser.parse_args()
    right = read = 0
    for record in json.loads(options.truth.read_text(encoding="utf-8")):
        if record["backend"] != options.backend or record["kind"] != "bash":
            continue
        text = stored_text(options.mirrors, record)
        verdict = "the text is not there" if text is None else compared(record, text)
        read += text is not None
        right += verdict == "right"
        sys.stdout.write(f"{record['id']}: {verdict}\n")
    sys.stdout.write(f"{right} of {read} scripts are read with every field right\n")
    return 0


def stored_text(mirrors: Path, record: Mapping[str, Any]) -> str | None:
    """The script's text at its commit; None where the mirror is not there or lacks it."""
    folder = mirrors / record["repo"].replace("/", "+") / "repo"
    wanted = f"{record['commit']}:{record['path']}"
    if not folder.is_dir():
        return None
    shown = subprocess.run(["git", "-C", str(folder), "show", wanted], capture_output=True, check=False)
    return shown.stdout.decode("utf-8") if shown.returncode == 0 else None


def compared(record: Mapping[str, Any], text: str) -> str:
    """``right``, or what is not."""
    try:
        facts = read_facts(megatron_job(text, record["id"], record["path"], given_to(record), VOCABULARY))
    except FindingsInvalid as error:
        return "refused: " + "; ".join(finding.what for finding in error.findings)
    except DocumentInvalid as error:
        return f"refused: {error.what}"
    wrong = []
    for name, wanted in record["expected"].items():
        if name not in facts or wanted is None:
            continue
        found = facts[name]
        if found != wanted and found not in record["accept"].get(name, ()):
            wrong.append(f"{name} {found} (should be {wanted})")
    return "right" if not wrong else "; ".join(wrong)


def given_to(record: Mapping[str, Any]) -> Given:
    """The environment and the arguments with which a person would start the script."""
    needs = dict(record["needs"])
    arguments = needs.pop("args", None)
    variables = {name: str(value) for name, value in needs.items()}
    return Given(variables, None if arguments is None else tuple(arguments), record["path"])


def read_facts(job: MegatronJob) -> dict[str, Any]:
    """The job in the words of the truth."""
    given = with_what_is_off(job.strategy)
    batch = job.workload.get("global_batch_size", 1)
    devices = job.num_devices or given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1)
    strategy, _ = complete_strategy(given, devices, batch)
    return model_facts(job) | {
        "world_size": job.num_devices,
        "tp": strategy.tp,
        "pp": strategy.pp,
        "vpp": strategy.vpp,
        "cp": strategy.cp,
        "ep": strategy.ep,
        "etp": strategy.etp,
        "sp": strategy.sp,
        "dp": strategy.dp,
        "micro_batch": strategy.micro_batch_size,
        "global_batch": batch,
        "num_microbatches": strategy.num_microbatches,
        "seq_len": job.workload.get("sequence_length"),
        "precision": job.workload.get("precision"),
        "zero_stage": strategy.zero_stage,
        "schedule": strategy.schedule if strategy.pp > 1 else None,
        "recompute": policies(given).get("recompute", "none"),
        "recompute_modules": [MODULES[name] for name in strategy.recompute_modules] or None,
        "offload_optimizer": strategy.optimizer_offload,
        "offload_activations": strategy.activation_offload,
        "overlap_grad_reduce": strategy.overlap_grad_reduce,
        "overlap_param_gather": strategy.overlap_param_gather,
        "overlap_tp": strategy.overlap_tp,
        "overlap_ep": strategy.overlap_ep,
    }


def model_facts(job: MegatronJob) -> dict[str, Any]:
    """Shapes of the model in the words of the truth; the last kind of layer stands for all."""
    kinds = job.model.layer_kinds
    attention, moe = kinds[-1].attention, kinds[-1].moe
    mlp = next((kind.mlp for kind in kinds if kind.mlp is not None), None)
    shared = attention.num_kv_heads < attention.num_heads
    return {
        "layers": job.model.num_layers,
        "hidden": job.model.hidden_size,
        "heads": attention.num_heads,
        "kv_heads": attention.num_kv_heads,
        "attention_kind": "mla" if attention.kind == "mla" else "gqa" if shared else "mha",
        "experts": moe.num_experts if moe else None,
        "topk": moe.top_k if moe else None,
        "moe_ffn": moe.expert_intermediate_size if moe else None,
        **({"ffn": mlp.intermediate_size} if mlp else {}),
    }


if __name__ == "__main__":
    raise SystemExit(main())
