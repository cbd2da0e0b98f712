"""What engines are told: launch words read back as the deployment that they were written for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import Served
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.words import EngineName
from tests.sampling import drawn
from tests.serving_deployments import NODE, drawn_deployment

CASES = [(engine, seed) for engine in ENGINES for seed in range(100)]


@pytest.mark.parametrize(("engine", "seed"), drawn(CASES, 18, kind=lambda case: case[0]))
def test_launch_words_read_back_as_what_they_were_written_for(engine: EngineName, seed: int) -> None:
    deployment, served, _, _ = drawn_deployment(engine, seed)
    room = ENGINES[engine]
    for group in deployment.groups:
        command = room.command(deployment, group, served, NODE)
        read = room.read_arguments(room.read_words(command.words, command.files), served)
        assert read.group == group.model_copy(update={"num_instances": 1})
        assert read.formats == deployment.formats
        drafts = group.settings.speculation is not None and group.settings.speculation.method == "eagle3"
        assert read.served == (served if drafts else replace(served, draft_model=None, draft_parameters=None))
        assert read.unread == ()
        assert command.num_nodes == max(1, group.layout.num_devices // NODE)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_of_a_deployment_is_listed_and_what_the_engine_has_not_is_refused(engine: EngineName) -> None:
    room = ENGINES[engine]
    deployment = Deployment(engine=engine, release=room.releases[0], groups=(InstanceGroup(),))
    command = room.command(deployment, deployment.groups[0], Served("someone/model"), NODE)
    with pytest.raises(DocumentInvalid, match=r"no (flag|argument|key).*made.up"):
        room.read_words((*command.words, "--made-up", "1"), command.files)
    further = {"vllm": "seed", "sglang": "random_seed", "tensorrt-llm": "attn_backend"}[engine]
    arguments = {**room.arguments(deployment, deployment.groups[0], Served("someone/model")), further: "7"}
    assert room.read_arguments(arguments, Served("someone/model")).unread == (further,)


def test_a_word_that_sets_one_key_of_a_configuration_reads_as_the_whole_one() -> None:
    room = ENGINES["vllm"]
    words = (
        "vllm",
        "serve",
        "m",
        "-tp=8",
        "--enable-expert-parallel",
        "--enable_eplb",
        "--eplb-config.num_redundant_experts",
        "8",
    )
    read = room.read_arguments(room.read_words(words, {}), Served("m"))
    assert (read.group.layout.tp, read.group.layout.ep, read.group.settings.redundant_experts) == (8, 8, 8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kv-transfer-config", '{"kv_connector": "MooncakeConnector", "kv_role": "kv_both"}'), "none that is read"),
        (("--quantization", "quark"), "how a checkpoint is stored"),
        (("--all2all-backend", "carrier_pigeon"), "takes allgather_reducescatter"),
        (("--decode-context-parallel-size", "3"), "dcp = 3 does not divide tp = 1"),
        (("--speculative-config", '{"method": "ngram"}'), "num_tokens"),
        (("--eplb-config", '{"num_redundant_experts": 4}'), "--enable-eplb"),
        (("--tensor-parallel-size",), "has no value"),
    ],
)
def test_words_of_vllm_that_no_deployment_stands_for_are_refused(words: tuple[str, ...], said: str) -> None:
    room = ENGINES["vllm"]
    with pytest.raises(DocumentInvalid, match=said):
        room.read_arguments(room.read_words(("vllm", "serve", "m", *words), {}), Served("m"))


def test_a_quantisation_of_experts_alone_leaves_dense_weights_as_they_are() -> None:
    room = ENGINES["vllm"]
    words = ("vllm", "serve", "m", "--quantization", "nvfp4_per_token")
    formats = room.read_arguments(room.read_words(words, {}), Served("m")).formats
    assert (formats.weights, formats.of_experts) == ("bf16", "nvfp4")
