"""Serving engines' own parsers take what is written for them and refuse what they have not.

They are asked in a run of all cases, and only where ``make serving-targets`` has installed them: importing one takes
8 to 15 s of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.checking.environment import is_ready
from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from planner.model.builtin import builtin_model
from planner.serving.engines.checking import checkpoint_config, runs_of
from planner.serving.engines.engine import Served
from planner.serving.engines.registry import ENGINES
from planner.serving.engines.validators import VALIDATORS
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.platforms import triton
from planner.serving.platforms.platform import Given
from planner.serving.words import EngineName
from tests.sampling import runs_whole
from tests.serving_deployments import NODE, drawn_deployment

PARSED: tuple[EngineName, ...] = ("vllm", "sglang")
REFUSED = {
    "vllm": (["--tensor-parallel-size", "7"], ["--data-parallel-size", "0"], ["--no-such-flag"]),
    "sglang": (["--model-path", "m", "--tp-size", "8", "--attn-dp-size", "3"], ["--model-path", "m", "--no-such-flag"]),
}


@pytest.fixture(scope="module", params=PARSED)
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """One process for all questions to an engine."""
    validator = VALIDATORS[request.param]
    if not runs_whole():
        pytest.skip("engines' own parsers are asked in a run of all cases (--all-cases)")
    if not is_ready(validator, validator.default_version):
        pytest.skip(f"{request.param} {validator.default_version} is not installed: make serving-targets")
    with Worker(validator, validator.default_version, timeout_s=300) as started:
        yield started


def asked(worker: Worker, engine: EngineName, seed: int) -> Iterator[tuple[dict[str, Any], Verdict]]:
    """Every run of a drawn deployment, and what the engine says of it."""
    deployment, served, model, _ = drawn_deployment(engine, seed)
    config = checkpoint_config(builtin_model(model), served)
    for group in deployment.groups:
        command = ENGINES[engine].command(deployment, group, served, NODE)
        for run in runs_of(group.role, command, group.layout.num_devices, 3):
            yield run, worker.ask({"config": config, **run})


def test_launch_words_are_taken_with_the_devices_that_are_planned(worker: Worker) -> None:
    engine: EngineName = "vllm" if worker.validator.name == "vllm" else "sglang"
    for seed in range(24):
        for run, said in asked(worker, engine, seed):
            assert said.accepted, f"seed {seed}, {run['of']}: {said.message} {run['words']}"
            assert said.facts["num_devices"] == run["num_devices"]


def test_what_the_engine_has_not_is_refused(worker: Worker) -> None:
    served = Served("m")
    config = checkpoint_config(builtin_model("llama-3.1-70b"), replace(served, weights="fp8"))
    for words in REFUSED[worker.validator.name]:
        said = worker.ask({"config": config, "words": words, "num_devices": 8})
        assert not said.accepted
        assert said.message


def test_triton_s_protobuf_takes_a_written_configuration_and_no_other_field() -> None:
    validator = triton.VALIDATOR
    if not is_ready(validator, validator.default_version):
        pytest.skip("tritonclient is not installed: make serving-targets")
    plain = Deployment(engine="vllm", release=ENGINES["vllm"].releases[0], groups=(InstanceGroup(),))
    files = triton.write(Given(plain, Served("m"), "llama", NODE)).files
    with Worker(validator, validator.default_version) as started:
        said = started.ask({"config": files["model_repository/llama/config.pbtxt"]})
        assert said.accepted
        assert said.facts == {"name": "llama", "backend": "vllm", "instances": 1}
        assert "no field named" in started.ask({"config": "bakend: 1"}).message


def test_the_snapshot_of_flags_is_the_parser_s(worker: Worker) -> None:
    from planner.serving.engines.sglang.words import flags as sglang_flags
    from planner.serving.engines.vllm.words import flags as vllm_flags

    table = {"vllm": vllm_flags, "sglang": sglang_flags}[worker.validator.name]()
    said = worker.ask({"flags": True}).facts["arguments"]
    assert set(said) == set(table.by_argument)
    assert all(tuple(each["words"]) == table.by_argument[name].words for name, each in said.items())
