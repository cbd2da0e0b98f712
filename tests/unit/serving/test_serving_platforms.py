"""Folders of deployments: each platform's files read back as what they were written for; faults in them are found."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from planner.backends.emission.write import write_folder
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.model.builtin import builtin_model
from planner.serving.engines.engine import Served
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Deployment, Formats, InstanceGroup, InstanceLayout, InstanceSettings
from planner.serving.platforms.plain import places
from planner.serving.platforms.registry import (
    PLATFORMS,
    Folder,
    check_folder,
    read_folder,
    write_deployment,
)
from planner.serving.words import EngineName
from profiles.catalogue.cluster_files import load_cluster
from tests.sampling import drawn
from tests.serving_deployments import NODE, drawn_deployment

PAIRS = [(name, engine) for name, room in PLATFORMS.items() for engine in room.engines]
CASES = [(name, engine, seed) for name, engine in PAIRS for seed in range(30)]
CLUSTERS = {"h100-sxm5-80gb": "dgx-h100", "b200-sxm-180gb": "dgx-b200"}


def written(folder: Folder, path: Path) -> Path:
    """The folder on disk."""
    return write_folder(folder.files, folder.executables, folder.manifest, path / "out")


def deployment(engine: EngineName, *groups: InstanceGroup, weights: str = "bf16") -> Deployment:
    """Of the engine's pinned release."""
    formats = Formats.model_validate({"weights": weights})
    return Deployment(engine=engine, release=ENGINES[engine].releases[0], formats=formats, groups=groups)


@pytest.mark.parametrize(("name", "engine", "seed"), drawn(CASES, 24, kind=lambda case: case[:2]))
def test_a_folder_passes_its_checks_and_starts_what_was_planned(
    tmp_path: Path, name: str, engine: EngineName, seed: int
) -> None:
    planned, served, model, device = drawn_deployment(engine, seed)
    if device not in CLUSTERS:
        device = "b200-sxm-180gb"
    cluster = load_cluster(CLUSTERS[device], 2 * NODE)
    try:
        folder = write_deployment(planned, builtin_model(model), cluster, name, served)
    except BackEndRefused:
        if name in ("plain", "dynamo"):  # these deploy everything
            raise
        return
    stages = check_folder(written(folder, tmp_path))
    assert [(each.stage, each.passed, each.message) for each in stages] == [
        (stage, True, "") for stage in ("files", "read back", "rules", "platform")
    ]


@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_a_plain_instance_is_deployed_by_every_platform(tmp_path: Path, name: str, engine: EngineName) -> None:
    planned = deployment(engine, InstanceGroup(num_instances=2, layout=InstanceLayout(tp=8)))
    served = Served("meta-llama/Llama-3.1-70B-Instruct", longest_tokens=8192)
    folder = write_deployment(planned, builtin_model("llama-3.1-70b"), load_cluster("dgx-h100", 16), name, served)
    path = written(folder, tmp_path)
    assert read_folder(path) == (planned, served)
    assert folder.manifest["launch_command"]


def test_a_changed_file_and_another_deployment_are_found(tmp_path: Path) -> None:
    planned = deployment("vllm", InstanceGroup(layout=InstanceLayout(tp=8)))
    folder = write_deployment(
        planned, builtin_model("llama-3.1-70b"), load_cluster("dgx-h100", 8), "plain", Served("m")
    )
    path = written(folder, tmp_path)
    script = path / "serve-aggregated.sh"
    script.write_text(script.read_text().replace("--tensor-parallel-size 8", "--tensor-parallel-size 7"))
    found = {each.stage: each for each in check_folder(path)}
    assert found["files"].message == "serve-aggregated.sh is edited"
    assert found["read back"].passed is False
    assert "tp = 7 does not divide" in found["rules"].message
    script.write_text(script.read_text().replace("--dtype", "--dtyp"))
    assert "has no flag --dtyp" in check_folder(path)[-1].message
    script.write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in check_folder(path)[-1].message
    (path / "asked.json").write_text('{"a": ')
    assert [(each.stage, each.passed) for each in check_folder(path)] == [("files", False)]
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"backend": "megatron"}))
    with pytest.raises(DocumentInvalid, match="no serving engine and platform wrote it"):
        check_folder(path)
    with pytest.raises(NotFound, match=r"no manifest\.json"):
        check_folder(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("name", "engine", "file", "old", "new", "said"),
    [
        ("dynamo", "vllm", "dynamo.yaml", "  components:", "  services: []\n  components:", "no key services"),
        ("dynamo", "vllm", "dynamo.yaml", "type: worker", "type: wroker", "'wroker' is none of frontend"),
        ("triton", "vllm", "model_repository/llama-3-1-70b/config.pbtxt", '"vllm"', '"python"', "does not read"),
        ("ray-serve", "vllm", "serve.yaml", "  route_prefix", "  route", "no key route"),
        ("llm-d", "vllm", "llm-inference-service.yaml", "  router:", "  routers: {}\n  router:", "no key routers"),
        ("plain", "tensorrt-llm", "aggregated-options.yaml", "max_seq_len", "max_sequence", "no key max_sequence"),
        ("plain", "tensorrt-llm", "aggregated-options.yaml", "dtype: auto", "dtype: fp7", "'fp7' is none of auto"),
    ],
)
def test_what_a_schema_does_not_have_is_refused(
    tmp_path: Path, name: str, engine: EngineName, file: str, old: str, new: str, said: str
) -> None:
    planned = deployment(engine, InstanceGroup(layout=InstanceLayout(tp=8)))
    served = Served("m", longest_tokens=8192)
    folder = write_deployment(planned, builtin_model("llama-3.1-70b"), load_cluster("dgx-h100", 8), name, served)
    path = written(folder, tmp_path)
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new, 1))
    assert any(each.passed is False and said in each.message for each in check_folder(path)[1:])


def test_what_no_platform_or_engine_takes_is_refused_before_anything_is_written() -> None:
    model, cluster = builtin_model("llama-3.1-70b"), load_cluster("dgx-h100", 16)
    apart = deployment("vllm", InstanceGroup(role="prefill"), InstanceGroup(role="decode"))
    with pytest.raises(NotFound, match="no platform"):
        write_deployment(apart, model, cluster, "nomad", Served("m"))
    with pytest.raises(BackEndRefused, match="prefill and decode"):
        write_deployment(apart, model, cluster, "triton", Served("m"))
    with pytest.raises(BackEndRefused, match="does not run SGLang"):
        write_deployment(deployment("sglang", InstanceGroup()), model, cluster, "llm-d", Served("m"))
    with pytest.raises(BackEndRefused, match="VL2: tp = 7"):
        write_deployment(
            deployment("vllm", InstanceGroup(layout=InstanceLayout(tp=7))), model, cluster, "plain", Served("m")
        )
    spread = deployment("vllm", InstanceGroup(layout=InstanceLayout(tp=8, pp=2)))
    with pytest.raises(BackEndRefused, match="deals whole ranks"):
        write_deployment(spread, model, cluster, "llm-d", Served("m"))
    with pytest.raises(DocumentInvalid, match="no WORDS"):
        PLATFORMS["plain"].read({"placement.json": '[{"role": "decode"}]'}, ENGINES["vllm"])


def test_small_instances_share_a_node_and_large_ones_take_whole_ones() -> None:
    prefill = InstanceGroup(role="prefill", num_instances=3, layout=InstanceLayout(tp=4))
    decode = InstanceGroup(role="decode", num_instances=1, layout=InstanceLayout(attention_dp=16, ep=16))
    found = places(deployment("sglang", prefill, decode), NODE)
    assert [(each.first_node, each.num_nodes, each.devices[0], each.port) for each in found] == [
        (0, 1, 0, 8000),
        (0, 1, 4, 8100),
        (1, 1, 0, 8000),
        (2, 2, 0, 8000),
    ]


def test_a_start_script_runs_the_words_with_what_its_node_is_told(tmp_path: Path) -> None:
    settings = InstanceSettings(max_num_sequences=256)
    group = InstanceGroup(layout=InstanceLayout(attention_dp=16, ep=16), settings=settings)
    planned = deployment("vllm", group, weights="fp8_block")
    served = Served("deepseek-ai/DeepSeek-V3", weights="fp8_block", num_experts=256)
    folder = write_deployment(planned, builtin_model("deepseek-v3"), load_cluster("dgx-h200", 16), "plain", served)
    path = written(folder, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "vllm").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (programs / "vllm").chmod(0o755)
    told = {"PATH": f"{programs}:/usr/bin:/bin", "HEAD_ADDRESS": "node7", "NODE_RANK": "1", "PORT": "8100"}
    said = subprocess.run(["bash", path / "serve-aggregated.sh"], env=told, capture_output=True, text=True, check=True)
    (given,) = [ENGINES["vllm"].command(planned, group, served, NODE)]
    assert said.stdout.split("\n")[:-1] == list(given.of_node(1, "node7", 8100)[1:])
    job = (path / "job.sbatch").read_text()
    assert subprocess.run(["bash", "-n", path / "job.sbatch"], check=False).returncode == 0
    assert f"start aggregated 8000 {','.join(map(str, range(8)))} 0 2 1" in job
    assert shlex.split(job.split("start aggregated")[1].splitlines()[0])[-1] == "1"
    assert json.loads((path / "placement.json").read_text())[0]["num_nodes"] == 2
