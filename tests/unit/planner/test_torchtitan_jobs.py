"""Job files of torchtitan's users are read to the fields that a person reads in them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.torchtitan.flavors import flavor_model
from planner.backends.torchtitan.job import job_of_module, job_of_toml
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.parameters import total_parameters

TOML = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 4096
steps = 10
[activation_checkpoint]
mode = "none"
[compile]
enable = true
"""


def toml(more: str, devices: int | None = 8, *words: str) -> LaunchJob:
    return job_of_toml(f"{TOML}\n{more}", "train.toml", words, devices)


CASES: tuple[tuple[str, int, dict[str, Any]], ...] = (
    (
        "",
        8,
        {"tp": 1, "dp_shard": 8, "zero_stage": 3, "micro_batch_size": 2, "num_microbatches": 1, "recompute": "none"},
    ),
    ("[parallelism]\ntensor_parallel_degree = 4", 8, {"tp": 4, "sp": True, "dp_shard": 2}),
    ("[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8", 8, {"zero_stage": 0}),
    ("[parallelism]\ndata_parallel_replicate_degree = 2", 8, {"dp_replicate": 2, "dp_shard": 4, "zero_stage": 3}),
    ("[parallelism]\nfsdp_reshard_after_forward = 'never'", 8, {"zero_stage": 2}),
    ("[parallelism]\ncontext_parallel_degree = 8", 8, {"cp": 8, "cp_kind": "ring", "dp_shard": 1, "zero_stage": 3}),
    (
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'Interleaved1F1B'",
        8,
        {"pp": 2, "vpp": 2, "schedule": "interleaved", "zero_stage": 1, "micro_batch_size": 1, "num_microbatches": 2},
    ),
    ("[parallelism]\nenable_async_tensor_parallel = true\ntensor_parallel_degree = 8", 8, {"overlap_tp": True}),
)


@pytest.mark.parametrize(("more", "devices", "expected"), CASES, ids=[case[0] or "plain" for case in CASES])
def test_the_strategy_of_a_job(more: str, devices: int, expected: dict[str, Any]) -> None:
    job = toml(more, devices)
    assert {name: job.strategy.get(name) for name in expected} == expected
    assert job.num_devices == devices
    assert job.software == "torchtitan==0.2.2"
    assert job.arguments.unknown == ()


def test_the_work_of_a_job() -> None:
    assert toml("").workload == {
        "global_batch_size": 16, "sequence_length": 4096, "precision": "bf16", "optimizer": "adam",
    }  # fmt: skip


def test_settings_behind_the_file_win() -> None:
    words = ("--training.seq_len", "8192", "--training.global-batch-size=64", "--model.converters", "float8")
    job = toml("", 8, *words, "--model.flavor=70B")
    assert (job.workload["sequence_length"], job.workload["global_batch_size"]) == (8192, 64)
    assert job.strategy["num_microbatches"] == 4
    assert job.model.num_layers == 80


@pytest.mark.parametrize("said", ["['float8']", "float8", "quantize.linear.float8,other"])
def test_eight_bit_products(said: str) -> None:
    """As a list, and as the command line of 0.2.2 says one (config/manager.py:228)."""
    job = toml("", 8, "--model.converters", said)
    assert job.workload["precision"] == "fp8"
    assert ("model.converters: other" in job.arguments.not_modelled) == ("other" in said)


def test_layers_are_dealt_with_a_place_for_the_ends() -> None:
    assert toml("[parallelism]\npipeline_parallel_degree = 4").chunk_layers == (8, 9, 8, 7)
    listed = "[['tok_embeddings', 'layers.0'], [" + ", ".join(f"'layers.{n}'" for n in range(1, 32)) + ", 'output']]"
    job = toml(f"[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = {listed}")
    assert job.chunk_layers == (1, 31)


@pytest.mark.parametrize(
    ("option", "expected"),
    [("op", "selective"), ("2", "selective"), ("1", "full")],
)
def test_selective_recompute(option: str, expected: str) -> None:
    words = ("--activation_checkpoint.mode=selective", f"--activation_checkpoint.selective_ac_option={option}")
    assert toml("", 8, *words).strategy["recompute"] == expected


def test_the_default_recomputes_every_second_layer() -> None:
    job = job_of_toml("[model]\nflavor = '8B'\n", "train.toml", (), 8)
    assert job.strategy["recompute"] == "selective"
    assert "every 2. layer is recomputed whole (recompute by operation is predicted)" in job.arguments.not_modelled
    assert "layers that are not compiled (compiled ones are predicted)" in job.arguments.not_modelled


def test_what_becomes_of_each_setting() -> None:
    more = "[checkpoint]\ninterval = 5\n[optimizer]\nname = 'AdamW'\nfoo = 1\n[quantize.linear.float8]\nemulate = true"
    lists = toml(more, 8, "--training.enable_cpu_offload").arguments
    assert lists.unknown == ("optimizer.foo = 1",)
    assert lists.not_modelled == ("training.enable_cpu_offload = True",)
    assert {"checkpoint.interval = 5", "quantize.linear.float8.emulate", "training.steps = 10"} <= set(
        lists.no_influence
    )
    assert "optimizer.name = AdamW" in lists.used


@pytest.mark.parametrize(
    ("more", "devices", "what"),
    [
        ("", None, "data_parallel_shard_degree is -1"),
        ("[parallelism]\ntensor_parallel_degree = 3", 8, "does not divide the 8 devices"),
        ("[parallelism]\ndata_parallel_shard_degree = 4", 8, "for 4 devices, not 8"),
        ("[parallelism]\ntensor_parallel_degree = 'a'", 8, "not a whole number"),
        ("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'X'", 8, "schedule 'X'"),
        ("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_layers_per_stage = 5", 8, "makes no 2 parts"),
        ("[model.x]\n", 8, "not TOML"),
    ],
)
def test_what_is_refused(more: str, devices: int | None, what: str) -> None:
    text = f"{TOML}\n{more}" if "model.x" not in more else "[model"
    with pytest.raises(DocumentInvalid, match=what.replace("(", r"\(")):
        job_of_toml(text, "train.toml", (), devices)


@pytest.mark.parametrize(("name", "flavor"), [("llama9", "8B"), ("llama3", "9B"), ("llama4", "17bx16e_irope")])
def test_models_that_are_not_known(name: str, flavor: str) -> None:
    with pytest.raises(DocumentInvalid):
        flavor_model(name, flavor, "train.toml")


@pytest.mark.parametrize(
    ("family", "flavor", "billions"),
    [
        ("llama3", "8B", 8.03),
        ("llama3", "405B_flex", 405.9),
        ("qwen3", "30B-A3B", 30.5),
        ("deepseek_v3", "671B", 671.0),
        ("llama4", "17bx16e", 107.0),
    ],
)
def test_flavors_have_the_published_sizes(family: str, flavor: str, billions: float) -> None:
    assert total_parameters(flavor_model(family, flavor, "a")) / 1e9 == pytest.approx(billions, rel=0.01)


MODULE = """
from torchtitan.config import TrainingConfig
def base() -> Trainer.Config:
    compile_config = CompileConfig(enable=True, enable_async_tensor_parallel=True)
    return Trainer.Config(
        model_spec=model_registry("8B", converters=[Float8LinearConverter.Config(filter_fqns=["lm_head"])]),
        training=TrainingConfig(local_batch_size=2 * 2, seq_len=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=8, enable_sequence_parallel=False),
        activation_checkpoint=FullAC.Config(),
        compile=compile_config,
        loss=Loss.Config(fn=lambda x: x),
    )
def small() -> Trainer.Config:
    config = base()
    config.training.seq_len = 4096
    config.parallelism.tensor_parallel_degree = 2
    config.activation_checkpoint = None
    config.model_spec = model_registry("70B")
    return config
def open_size() -> Trainer.Config:
    config = base()
    config.training.seq_len = int(os.environ["L"])
    return config
def many() -> Trainer.Config:
    for _ in range(3):
        pass
    return base()
"""


def module(*words: str) -> LaunchJob:
    return job_of_module(MODULE, "configs.py", ("--module", "llama3", *words), 16)


def test_a_function_of_a_config_module() -> None:
    job = module("--config", "base")
    wanted = {"tp": 8, "sp": False, "dp_shard": 2, "micro_batch_size": 4, "recompute": "full", "overlap_tp": True}
    assert {name: job.strategy[name] for name in wanted} == wanted
    assert (job.workload["precision"], job.workload["sequence_length"], job.software) == ("fp8", 8192, "torchtitan")


def test_a_function_that_changes_another_one() -> None:
    job = module("--config", "small", "--training.local_batch_size", "1")
    assert (job.strategy["tp"], job.strategy["recompute"], job.model.num_layers) == (2, "none", 80)
    assert (job.workload["precision"], job.workload["sequence_length"]) == ("bf16", 4096)
    assert job.strategy["micro_batch_size"] == 1


def test_a_value_that_the_text_does_not_decide_can_be_said() -> None:
    with pytest.raises(DocumentInvalid, match=r"training.seq_len is .*line 22"):
        module("--config", "open_size")
    assert module("--config", "open_size", "--training.seq_len=2048").workload["sequence_length"] == 2048


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "which of its functions"),
        (("--config", "none"), "no function 'none'"),
        (("--config", "many"), "more than data"),
        (("--config", "base", "--foo", "1"), "--foo is no setting"),
        (("--config", "base", "1"), "stands behind no setting"),
    ],
)
def test_modules_that_are_refused(words: tuple[str, ...], what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        module(*words)
