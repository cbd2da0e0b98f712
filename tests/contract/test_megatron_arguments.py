"""Every argument of the pinned Megatron-LM is one of: used, without influence on the plan, not modelled."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from planner.backends.checking.environment import is_ready, overlay
from planner.backends.megatron.validator import VALIDATOR
from planner.backends.megatron.version import MEGATRON_CORE_VERSION
from planner.model.argument_lists import known_arguments
from planner.model.megatron_args import megatron_job
from planner.model.megatron_flags import MegatronFlags
from tests.command_line import REPOSITORY

KNOWN = known_arguments("megatron")
(RELEASE,) = KNOWN.releases
LISTS = {"used": KNOWN.used, "no influence": KNOWN.no_influence, "not modelled": KNOWN.not_modelled}
MODEL = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --max-position-embeddings 8"
SIZED = f"{MODEL} --vocab-size 100"
TEXTS = (
    SIZED,
    f"{SIZED} --multi-latent-attention --num-experts 4 --context-parallel-size 2 --pipeline-model-parallel-size 2"
    " --num-virtual-stages-per-pipeline-rank 2 --recompute-granularity selective --window-size (7,0)"
    " --mtp-num-layers 1",
    f"{SIZED} --group-query-attention --disable-bias-linear --use-megatron-fsdp --recompute-granularity full"
    " --recompute-method block --recompute-num-layers 1 --optimizer adam --pipeline-model-parallel-layout Et*4L",
    f"{SIZED} --use-distributed-optimizer --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
    f"{MODEL} --vocab-file v --merge-file m",
)
"""Together they take every way through the reader."""


def test_the_release_is_the_pinned_one() -> None:
    assert RELEASE == MEGATRON_CORE_VERSION


def test_no_argument_is_in_two_lists() -> None:
    for one, other in combinations(LISTS, 2):
        assert not LISTS[one] & LISTS[other], f"{one} and {other}"


def test_every_argument_of_the_parser_is_in_a_list() -> None:
    if not is_ready(VALIDATOR, RELEASE):
        pytest.skip(f"validator megatron-core=={RELEASE} is not installed: python -m tests.install_validators")
    command = [sys.executable, "-m", "tests.contract.megatron_options", str(overlay(VALIDATOR, RELEASE))]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=300)
    arguments = done.stdout.splitlines()
    assert len(arguments) == 808
    spelled = {name for line in arguments for name in line.split()}
    listed = KNOWN.names
    assert not spelled - listed, "sort these in"
    assert not listed - spelled, "the parser has these no more"


def test_used_is_what_the_reader_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    finish = MegatronFlags.finish

    def remembered(flags: MegatronFlags) -> None:
        asked.update(flags.asked)
        finish(flags)

    monkeypatch.setattr(MegatronFlags, "finish", remembered)
    for text in TEXTS:
        megatron_job(text, "x", "a")
    assert sorted(KNOWN.used - asked) == [], "called used, and not asked for"
    assert not asked & (KNOWN.no_influence | KNOWN.not_modelled), "asked for, and not called used"
