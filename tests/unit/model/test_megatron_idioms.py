"""Scripts in the idioms of public ones are read to the fields that a person reads in them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.megatron_args import LaunchJob, megatron_job
from planner.model.shell.launches import Given
from tests.unit.model.launch_scripts import BRANCHES, TINY, WORK, Script
from tests.unit.model.launch_scripts_started import STARTS

SCRIPTS = (*BRANCHES, *STARTS)


def read(script: Script) -> LaunchJob:
    def beside(name: str) -> str | None:
        return next((text for file, text in script.files.items() if name.endswith(file)), None)

    given = Given(script.variables, script.arguments, "/jobs/train.sh", beside)
    return megatron_job(script.text, "x", "train.sh", given)


def facts(job: LaunchJob) -> dict[str, Any]:
    kind = job.model.layer_kinds[-1]
    mlp = next((each.mlp for each in job.model.layer_kinds if each.mlp is not None), None)
    return {
        **job.strategy,
        "devices": job.num_devices,
        "chunks": job.chunk_layers,
        "layers": job.model.num_layers,
        "hidden": job.model.hidden_size,
        "attention": kind.attention.kind,
        "kv_heads": kind.attention.num_kv_heads,
        "ffn": mlp.intermediate_size if mlp else None,
        "gated": mlp.gated if mlp else None,
        "experts": kind.moe.num_experts if kind.moe else None,
        "top_k": kind.moe.top_k if kind.moe else None,
        "batch": job.workload["global_batch_size"],
        "precision": job.workload["precision"],
        "optimizer": job.workload.get("optimizer"),
        "launches": job.launches,
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_fields_of_a_script(script: Script) -> None:
    job = read(script)
    found = facts(job)
    assert {name: found.get(name) for name in script.expected} == script.expected
    assert tuple(name for name, _ in job.taken_as_unset) == script.unset
    assert job.undecided == ()
    assert job.skipped == ()


def test_there_are_enough_of_them() -> None:
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS) >= 30


@pytest.mark.parametrize(
    ("text", "decided", "expected"),
    [
        (
            f"N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $N pretrain_gpt.py {TINY} {WORK}",
            {"N": "8"},
            "devices",
        ),
        (
            f"if hostname | grep -q h100; then X=--fp8-format; X+=' hybrid'; fi\n"
            f"torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} $X",
            {},
            "undecided",
        ),
        (f"source $HOME/env.sh\ntorchrun --nproc_per_node $G pretrain_gpt.py {TINY} {WORK}", {}, "undecided"),
    ],
)
def test_what_the_text_does_not_decide_is_not_guessed(text: str, decided: dict[str, str], expected: str) -> None:
    job = megatron_job(text, "x", "train.sh", Given({}))
    if expected == "devices":
        assert job.num_devices is None
    else:
        assert job.undecided
        assert all(place.line > 0 and place.say for place in job.undecided)
        assert job.workload["precision"] == "bf16"


def test_a_degree_that_the_text_does_not_decide_is_asked_for_by_name() -> None:
    from profiles.validation import FindingsInvalid

    text = f"TP=$(python choose.py)\ntorchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} "
    with pytest.raises(FindingsInvalid) as raised:
        megatron_job(text + "--tensor-model-parallel-size $TP", "x", "train.sh")
    (finding,) = raised.value.findings
    assert finding.pointer == "/--tensor-model-parallel-size"
