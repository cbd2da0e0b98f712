"""Public launch scripts, read and compared: ``python -m benchmarks.launch_scripts TRUTH.json MIRRORS``.

``--examples``: the scripts of Megatron-LM's own ``examples/`` folders named so are estimated too.

``TRUTH.json``: records with ``id, repo, path, commit, needs`` and the fields that a person reads in the script
(``expected``, and ``accept``: other values that are as right).  ``MIRRORS``: a folder of bare repositories, each as
``owner+name/repo``; the texts are read from there with git and are no part of this repository.  One line a script:
right, the fields that differ, or what was asked for, and what ``meshwright estimate --from`` made of it; then how many.
``--record`` writes ``benchmarks/tables/launch-scripts.json``, from which ``docs/reference/launch-scripts.md`` is made.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.shell.launches import NOTHING, Given
from planner.operations.launch_files import needs_model, read_script, script_strategy
from planner.operations.said_script import SaidScript
from planner.strategy.relief_layers import policies
from planner.strategy.text import complete_strategy
from profiles.validation import FindingsInvalid

CLUSTERS = {
    "megatron": "dgx-h100",
    "mindspeed": "ascend-910b-8",
    "deepspeed": "dgx-h100",
    "torchtitan": "dgx-h100",
    "accelerate": "dgx-h100",
    "megatron-bridge": "dgx-h100",
}
"""Back-ends, and where a launch of each is estimated."""
VOCABULARY = 128_000
"""For scripts whose tokenizer is not told; the truth says nothing of their vocabulary."""
MODEL, MIXTURE = "llama-3.1-8b", "qwen3-30b-a3b"
"""Beside files that say how to train and not what, or train what the planner has no description of."""
STAND_IN = "a model that may stand for it"
MORE_DEVICES = 32
"""For examples that are written for one node and whose experts need more."""
NEED_DEVICES = ("etp * ep must divide", "does not divide the global batch", "the workload is not described")
"""What is said where a launch of more devices is taken for one of the cluster's own number, or of none."""
ESTIMATE = "an estimate"
MEGATRON = "NVIDIA+Megatron-LM"
DEGREES = re.compile(r"tp \* cp \* pp = (\d+) does not divide the \d+ devices")
RESULT = Path(__file__).parent / "tables" / "launch-scripts.json"
MODULES = {
    "attention_core": "core_attn", "norm": "layernorm", "mlp": "mlp", "moe": "moe", "activation": "moe_act",
    "mla_up_proj": "mla_up_proj",
}  # fmt: skip


def main() -> int:
    """Print a line a script, then how many are right and how many give an estimate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch_scripts")
    parser.add_argument("truth", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--backend", choices=CLUSTERS)
    parser.add_argument("--cluster", help="instead of one that the back-end trains on")
    parser.add_argument("--examples", nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--record", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    records = json.loads(options.truth.read_text(encoding="utf-8"))
    rows = []
    for backend in (options.backend,) if options.backend else CLUSTERS:
        rows += scripts(backend, records, options.mirrors, options.cluster or CLUSTERS[backend])
    if options.record:
        recorded = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "scripts": rows}
        RESULT.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    if options.examples:
        examples(options.mirrors / MEGATRON / "repo", options.examples, options.cluster or CLUSTERS["megatron"])
    return 0


def scripts(backend: str, records: Sequence[Mapping[str, Any]], mirrors: Path, cluster: str) -> list[dict[str, str]]:
    """A line for each launch of one back-end, then how many of all are right; a missing text counts as not right."""
    rows, right, printed, own = (
        list[dict[str, str]](),
        0,
        0,
        [record for record in records if record["backend"] == backend],
    )
    for record in own:
        text = stored_text(mirrors, record)
        verdict, answer = "the text is not there", ""
        if text is not None:
            verdict = compared(record, text)
            answer = estimated(text, record["path"], given_to(record), cluster, record["expected"].get("world_size"))
        right += verdict == "right"
        printed += answer.startswith(ESTIMATE)
        sys.stdout.write(f"{record['id']}: {verdict}; {answer}\n")
        named = {name: str(record[name]) for name in ("id", "repo", "path", "commit")}
        rows.append({"backend": backend, **named, "verdict": verdict, "answer": answer})
    sys.stdout.write(f"{backend}: {right} of {len(own)} are read with every field right, {printed} give an estimate\n")
    return rows


def examples(repository: Path, folders: Sequence[str], cluster: str) -> None:
    """The same for the scripts of some folders of Megatron-LM's ``examples``, as they stand."""
    places = [f"examples/{folder}" for folder in folders]
    listed = git(repository, "ls-tree", "-r", "--name-only", "HEAD", *places) or ""
    scripts = [name for name in listed.splitlines() if name.endswith(".sh")]
    answers = {
        name: estimated(git(repository, "show", f"HEAD:{name}") or "", name, NOTHING, cluster) for name in scripts
    }
    for name, answer in answers.items():
        sys.stdout.write(f"{name}: {answer}\n")
    printed = sum(answer.startswith(ESTIMATE) for answer in answers.values())
    sys.stdout.write(f"{printed} of {len(answers)} examples give an estimate\n")


def estimated(text: str, path: str, given: Given, cluster: str, devices: int | None = None) -> str:
    """What the real command says of a script; what it asks for (a vocabulary, enough devices) is said once each.

    ``devices``: of the launch, where its text leaves them to the launcher.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = placed(folder, path, text)
        words = ["estimate", "--from", str(file), "--cluster", cluster, "-o", "json", "--quiet"]
        if needs_model(str(file)):
            words += ["--model", MODEL, "--sequence-length", "2048"]
            says_batch = path.endswith(".json") and '"auto"' not in text
            words += ["--devices", "8"] if says_batch else ["--global-batch-size", "64"]
        words += [word for name, value in given.variables.items() for word in ("--set", f"{name}={value}")]
        said = ""
        for _ in range(3):
            answer = command([*words, *([] if given.arguments is None else ["--", *given.arguments])])
            if answer.get("strategy"):
                size = f"{answer['peak_memory_bytes'] / 2**30:.1f} GiB"
                fits = "" if answer["status"] != "infeasible" else ", does not fit"
                return f"{ESTIMATE}{said}: {answer['step_time_s']:.3g} s, {size}{fits}"
            what = str(answer["error"]["what"])
            if "--vocab-size" in what and "--vocab-size" not in words:
                more = ["--vocab-size", str(VOCABULARY)]
            elif (match := DEGREES.search(what)) is not None and "--devices" not in words:
                more = ["--devices", match[1]]
            elif "--devices" not in words and any(each in what for each in NEED_DEVICES):
                more = ["--devices", str(devices or MORE_DEVICES)]
            elif STAND_IN in str(answer["error"].get("hint")) and "--model" not in words:
                more = ["--model", MIXTURE if "moe_" in text else MODEL]
            else:
                return f"refused{said}: {' '.join(what.split())[:200]}"
            words, said = [*words, *more], f"{said} with {' '.join(more)}"
    return "refused"


def command(words: Sequence[str]) -> dict[str, Any]:
    """The JSON that ``meshwright`` prints, or its error."""
    code = "import sys; from planner.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.stdout:
        return dict(json.loads(done.stdout))
    return dict(json.loads(done.stderr[done.stderr.index('{\n  "error"') :]))


def git(repository: Path, *words: str) -> str | None:
    """What git prints; None where it fails."""
    shown = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=False)
    return shown.stdout.decode("utf-8") if shown.returncode == 0 else None


def stored_text(mirrors: Path, record: Mapping[str, Any]) -> str | None:
    """The script's text at its commit; None where the mirror is not there or lacks it."""
    folder = mirrors / record["repo"].replace("/", "+") / "repo"
    return git(folder, "show", f"{record['commit']}:{record['path']}") if folder.is_dir() else None


def compared(record: Mapping[str, Any], text: str) -> str:
    """``right``, or what is not."""
    try:
        facts = read_facts(job_of(record, text))
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


def job_of(record: Mapping[str, Any], text: str) -> LaunchJob:
    """What is read.  Raises FindingsInvalid, DocumentInvalid."""
    given = given_to(record)
    vocabulary = VOCABULARY if record["kind"] == "bash" and record["backend"] != "megatron-bridge" else None
    with tempfile.TemporaryDirectory() as folder:
        file = placed(folder, record["path"], text)
        named = MODEL if needs_model(str(file)) else None
        said = SaidScript(str(file), given.variables, given.arguments, vocabulary, model=named)
        try:
            return read_script(said)
        except DocumentInvalid as error:
            if error.where == "--vocab-size":
                return read_script(replace(said, vocab_size=None))
            if STAND_IN not in (error.hint or ""):
                raise
            return read_script(replace(said, model=MIXTURE if "moe_" in text else MODEL))


def placed(folder: str, path: str, text: str) -> Path:
    """A file under its own name, in a folder of the name that it stands in."""
    file = Path(folder) / Path(path).parent.name / Path(path).name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def given_to(record: Mapping[str, Any]) -> Given:
    """The environment and the arguments with which a person would start the script."""
    needs = dict(record["needs"])
    arguments = needs.pop("args", None)
    if "config" in needs:
        arguments = ["--config", needs.pop("config")]
    variables = {name: str(value) for name, value in needs.items()}
    return Given(variables, None if arguments is None else tuple(arguments), record["path"])


def read_facts(job: LaunchJob) -> dict[str, Any]:
    """The job in the words of the truth."""
    given = script_strategy(job)
    block = given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1)
    devices = job.num_devices or block * given.get("ep", 1)
    each = given.get("micro_batch_size", 1) * given.get("num_microbatches", 1)
    batch = job.workload.get("global_batch_size", each * devices // block)
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
        "dp": strategy.dp if job.num_devices else None,
        "dp_replicate": strategy.dp_replicate,
        "cp_kind": strategy.cp_kind,
        "micro_batch": strategy.micro_batch_size,
        "global_batch": job.workload.get("global_batch_size"),
        "num_microbatches": strategy.num_microbatches if job.num_devices or "num_microbatches" in given else None,
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


def model_facts(job: LaunchJob) -> dict[str, Any]:
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
