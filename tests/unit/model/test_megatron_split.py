"""The layers of each chunk that a launch script's arguments mean."""

from __future__ import annotations

import pytest

from planner.model.megatron_args import LaunchJob, megatron_job
from profiles.validation import FindingsInvalid

MODEL = "--hidden-size 96 --num-attention-heads 4 --max-position-embeddings 8 --vocab-size 100"
ACCOUNTS = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"


def job(layers: int, pp: int, words: str) -> LaunchJob:
    text = f"torchrun pretrain_gpt.py {MODEL} --num-layers {layers} --pipeline-model-parallel-size {pp} {words}"
    return megatron_job(text, "script", "run.sh")


@pytest.mark.parametrize(
    ("layers", "pp", "words", "vpp", "chunks"),
    [
        (94, 32, f"{ACCOUNTS} --num-virtual-stages-per-pipeline-rank 3", 3, (0, *(1,) * 94, 0)),
        (94, 32, f"{ACCOUNTS} --num-layers-per-virtual-pipeline-stage 1", 3, (0, *(1,) * 94, 0)),
        (126, 16, f"{ACCOUNTS} --num-layers-per-virtual-pipeline-stage 1", 8, (0, *(1,) * 126, 0)),
        (7, 4, "--account-for-loss-in-pipeline-split", 1, (2, 2, 2, 1)),
        (61, 4, "--decoder-first-pipeline-num-layers 16 --decoder-last-pipeline-num-layers 13", 1, (16, 16, 16, 13)),
        (14, 3, "--decoder-last-pipeline-num-layers 2 --num-virtual-stages-per-pipeline-rank 2", 2, (3, 3, 1) * 2),
        (7, 2, "--pipeline-model-parallel-layout 'E|t*3|(tt|)*2L' --tensor-model-parallel-size 1", None, None),
        (7, 2, "--pipeline-model-parallel-layout 'Et|t*3,|tt|tL'", 2, (1, 3, 2, 1)),
        (7, 5, "--pipeline-model-parallel-layout 'E|t*3|(tt|)*2L'", 1, (0, 3, 2, 2, 0)),
        (8, 4, "--num-virtual-stages-per-pipeline-rank 2", 2, (1,) * 8),
        (8, 4, "", 1, (2,) * 4),
        (9, 4, "", 1, None),
    ],
)
def test_layers_of_chunks(layers: int, pp: int, words: str, vpp: int | None, chunks: tuple[int, ...] | None) -> None:
    if vpp is None:
        with pytest.raises(FindingsInvalid, match="5 chunks, which 2 stages must divide"):
            job(layers, pp, words)
        return
    read = job(layers, pp, words)
    assert read.strategy.get("vpp", 1) == vpp
    assert read.chunk_layers == chunks


@pytest.mark.parametrize(
    ("layers", "pp", "words", "flag"),
    [
        (93, 32, f"{ACCOUNTS} --num-virtual-stages-per-pipeline-rank 3", "account-for-embedding-in-pipeline-split"),
        (94, 32, "--account-for-loss-in-pipeline-split", "account-for-loss-in-pipeline-split"),
        (94, 32, f"{ACCOUNTS} --num-virtual-stages-per-pipeline-rank 2", "num-virtual-stages-per-pipeline-rank"),
        (94, 4, f"{ACCOUNTS} --decoder-last-pipeline-num-layers 4", "account-for-embedding-in-pipeline-split"),
        (8, 4, "--decoder-last-pipeline-num-layers 4", "decoder-last-pipeline-num-layers"),
        (8, 2, "--decoder-first-pipeline-num-layers 4 --decoder-last-pipeline-num-layers 3", ""),
        (7, 5, f"{ACCOUNTS} --pipeline-model-parallel-layout 'E|t*3|(tt|)*2L'", "pipeline-model-parallel-layout"),
        (8, 5, "--pipeline-model-parallel-layout 'E|t*3|(tt|)*2L'", "pipeline-model-parallel-layout"),
        (7, 5, "--pipeline-model-parallel-layout 'E|t*3|(tx|)*2L'", "pipeline-model-parallel-layout"),
        (7, 5, "--pipeline-model-parallel-layout 't*3|E|(tt|)*2L'", "pipeline-model-parallel-layout"),
    ],
)
def test_what_does_not_hold_together_is_a_finding(layers: int, pp: int, words: str, flag: str) -> None:
    with pytest.raises(FindingsInvalid) as refused:
        job(layers, pp, words)
    assert f"/--{flag or 'decoder-first-pipeline-num-layers'}" in {each.pointer for each in refused.value.findings}


def test_a_comment_of_an_arguments_file_asks_for_no_quotes() -> None:
    lines = [*MODEL.split(" --"), "num-layers 7", "pipeline-model-parallel-size 2"]
    text = "\n".join(f"--{line.removeprefix('--')}" for line in lines)
    told = f"{text}\n# off by default; the plan's `t` counts on it\n--pipeline-model-parallel-layout Et|t*3|tt|tL\n"
    assert megatron_job(told, "megatron", "megatron.args").chunk_layers == (1, 3, 2, 1)
