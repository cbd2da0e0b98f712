"""Files of Megatron-Bridge's users are read with every field as a person reads it; open ones are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.launch_scripts import read_facts
from planner.backends.megatron_bridge.job_lists import list_of
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE
from planner.backends.megatron_bridge.recipe_table import recipe_named, recipe_names, section_fields
from planner.backends.megatron_bridge.version import BRIDGE_VERSION
from planner.backends.megatron_bridge.write import RECIPE_FILE, write
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.operations.launch_files import read_script, script_strategy
from planner.operations.said_script import SaidScript
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import backend_findings
from planner.strategy.strategy import Strategy
from planner.strategy.text import complete_strategy
from profiles.catalogue.cluster_files import load_cluster
from profiles.validation import FindingsInvalid
from tests.plan_factory import make_plan
from tests.unit.planner.bridge_recipe_files import ARGPARSE, ASSIGNED, ENVIRONMENT, FILES, PERFORMANCE, RecipeFile


def read(tmp_path: Path, case: RecipeFile, **more: Any) -> LaunchJob:
    for name, text in {case.name: case.text, **case.beside}.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    said = {"variables": case.variables, "arguments": case.words or None, "devices": case.devices, **more}
    return read_script(SaidScript(str(tmp_path / case.name), **said))


def facts_of(job: LaunchJob) -> dict[str, Any]:
    facts = read_facts(job)
    return facts | {
        "vocab": job.model.vocab_size,
        "recompute": job.strategy.get("recompute", "none"),
        "chunk_layers": job.chunk_layers,
        "optimizer": job.workload.get("optimizer"),
        "gradient_dtype": job.workload.get("gradient_dtype", "fp32"),
    }


@pytest.mark.parametrize("case", FILES, ids=[case.name for case in FILES])
def test_every_field_is_read(tmp_path: Path, case: RecipeFile) -> None:
    facts = facts_of(read(tmp_path, case))
    assert {name: facts.get(name) for name in case.expected} == case.expected


def test_a_file_of_this_machine_and_one_that_was_sent_are_read_alike(tmp_path: Path) -> None:
    here = read(tmp_path, ASSIGNED)
    sent = read_script(SaidScript(ASSIGNED.name, devices=64, sent=ASSIGNED.text))
    assert sent == here


def test_settings_are_in_the_three_lists(tmp_path: Path) -> None:
    text = ASSIGNED.text.replace(
        "    cfg.logger.log_interval = 1\n",
        "    cfg.logger.log_interval = 1\n    cfg.model.moe_expert_capacity_factor = 1.0\n    cfg.model.wrong = 3\n",
    )
    found = read(tmp_path, ASSIGNED._replace(text=text)).arguments
    assert "model.tensor_model_parallel_size=8" in found.used
    assert "logger.log_interval=1" in found.no_influence
    assert "model.moe_expert_capacity_factor=1.0" in found.not_modelled
    assert found.unknown == ("model.wrong=3",)


def test_an_open_value_is_asked_for_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid) as raised:
        read(tmp_path, ENVIRONMENT, variables={})
    assert "train.global_batch_size" in raised.value.what
    assert raised.value.hint == "say it: -- train.global_batch_size=VALUE"
    job = read(tmp_path, ENVIRONMENT, variables={}, arguments=("train.global_batch_size=4096",))
    assert job.workload["global_batch_size"] == 4096


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("cfg.train.global_batch_size = batch_of(8)", "train.global_batch_size"),
        ("cfg.model.tensor_model_parallel_size = 2 * WIDTH", "model.tensor_model_parallel_size"),
        ("cfg.mixed_precision = own_precision()", "mixed_precision"),
        ("cfg.mixed_precision = 'own'", "mixed_precision"),
        ("cfg.train = own_training()", "train.micro_batch_size"),
        ("cfg.ddp.use_distributed_optimizer = not own()", "ddp.use_distributed_optimizer"),
    ],
)
def test_what_the_text_does_not_decide_is_never_taken_for_unset(tmp_path: Path, line: str, path: str) -> None:
    text = ASSIGNED.text.replace("    cfg.logger.log_interval = 1\n", f"    {line}\n")
    with pytest.raises(DocumentInvalid, match="which the text does not decide") as raised:
        read(tmp_path, ASSIGNED._replace(text=text))
    assert path in raised.value.what


def test_adapters_of_other_calls_are_refused(tmp_path: Path) -> None:
    for call in ("make_adapters()", "VLMLoRA(dim=8)", "LoRA(target_modules=['in_proj'])", "LoRA(dim='8')"):
        text = ASSIGNED.text.replace("    cfg.logger.log_interval = 1\n", f"    cfg.peft = {call}\n")
        with pytest.raises(DocumentInvalid, match=r"adapters|peft\.dim"):
            read(tmp_path, ASSIGNED._replace(text=text))


EVERY = ["q", "k", "v", "o", "gate", "up", "down"]
ADAPTERS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "class": ("cfg.peft = LoRA()", {"rank": 32, "targets": EVERY}),
    "fields": ("cfg.peft = LoRA(dim=4, alpha=8, target_modules=['linear_fc1'])", {"rank": 4, "targets": EVERY[4:6]}),
    "assigned": ("cfg.peft = LoRA()\n    cfg.peft.dim = 8", {"rank": 8, "targets": EVERY}),
    "canonical": (
        "cfg.peft = CanonicalLoRA(target_modules=['*.mlp.linear_fc1_up', 'linear_v'])",
        {"rank": 32, "targets": ["v", "up"]},
    ),
    "scheme": ("cfg.peft = default_peft_config('dora', dim=2)", {"rank": 2, "targets": EVERY, "dora": True}),
    "none": ("cfg.peft = None", None),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_are_what_the_job_trains(tmp_path: Path, name: str) -> None:
    line, said = ADAPTERS[name]
    text = ASSIGNED.text.replace("    cfg.logger.log_interval = 1\n", f"    {line}\n")
    job = read(tmp_path, ASSIGNED._replace(text=text))
    assert job.workload.get("training") == (said and {"kind": "lora", **said})
    assert not job.arguments.unknown


def test_a_recipe_of_adapters_is_read_with_its_words(tmp_path: Path) -> None:
    text = (
        "from megatron.bridge.recipes.llama import llama3_8b_peft_config as c\n"
        "from megatron.bridge.training.finetune import finetune\nfinetune(c(), None)\n"
    )
    case = RecipeFile("peft.py", text, {}, devices=8)
    assert read(tmp_path, case).workload["training"] == {"kind": "lora", "rank": 8, "targets": EVERY}
    words = ("peft.dim=64", "peft.target_modules=[linear_qkv,linear_proj]")
    job = read(tmp_path, case._replace(words=words))
    assert job.workload["training"] == {"kind": "lora", "rank": 64, "targets": EVERY[:4]}
    assert [line for line in job.assumed if "one A is shared" in line]
    dora = read(tmp_path, case._replace(text=text.replace("c()", "c(peft_scheme='dora')")))
    assert dora.workload["training"] == {"kind": "lora", "rank": 8, "targets": EVERY, "dora": True}
    launch = "torchrun scripts/training/run_recipe.py --model llama3_8b --mode dora --dataset mock\n"
    started = read(tmp_path, RecipeFile("run.sh", launch, {}, devices=8))
    assert started.workload["training"] == dora.workload["training"]


@pytest.mark.parametrize("test", ["is_big()", "not is_big()", "is_big() == 3", "HAVE_TE", "is_big() or False"])
def test_a_condition_on_a_call_is_undecided(tmp_path: Path, test: str) -> None:
    text = "from somewhere import HAVE_TE\n" + ASSIGNED.text.replace(
        "    cfg.logger.log_interval = 1\n", f"    if {test}:\n        cfg.model.context_parallel_size = 4\n"
    )
    job = read(tmp_path, ASSIGNED._replace(text=text))
    assert (len(job.undecided), job.strategy["cp"]) == (1, 2)


def test_an_undecided_condition_that_sets_something_is_told(tmp_path: Path) -> None:
    text = ARGPARSE.text.replace("if args.fp8:", "if torch.cuda.get_device_capability()[0] > 9:")
    job = read(tmp_path, ARGPARSE._replace(text=text, words=()))
    assert [place.line for place in job.undecided] == [14]
    assert job.workload["precision"] == "bf16"


def test_a_model_that_is_not_described_is_asked_for(tmp_path: Path) -> None:
    text = ASSIGNED.text.replace("llama import llama3_70b", "nemotronh import nemotron_3_nano").replace(
        "llama3_70b", "nemotron_3_nano"
    )
    with pytest.raises(DocumentInvalid, match="Mamba layers"):
        read(tmp_path, ASSIGNED._replace(text=text))
    assert read(tmp_path, ASSIGNED._replace(text=text), model="qwen3-30b-a3b").model.name == "qwen3-30b-a3b"
    with pytest.raises(DocumentInvalid, match="says the model"):
        read(tmp_path, ASSIGNED, model="qwen3-30b-a3b")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("from megatron.bridge import x\nprint(1)\n", "makes no configuration"),
        ("from megatron.bridge import (\n", "not Python"),
        ("from megatron.bridge.recipes.llama import llama9_1b_pretrain_config as c\nc()\n", "no recipe llama9_1b"),
        ("from megatron.bridge.recipes.nemotron_vl import nemotron_nano_v2_vl_12b_peft_config as c\nc()\n", "VLMLoRA"),
        ("import megatron.bridge\ndef f():\n    return f()\nf()\n", "calls itself"),
        ("import megatron.bridge\nfor i in range(1000):\n    for j in range(1000):\n        a = 1\n", "too many steps"),
    ],
)
def test_bad_files_get_one_clear_error(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        read(tmp_path, RecipeFile("bad.py", text, {}))


def test_words_that_the_script_does_not_take_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="takes no --pp"):
        read(tmp_path, ARGPARSE._replace(words=("--pp", "3")))


def test_a_benchmark_without_a_device_type_asks_for_it(tmp_path: Path) -> None:
    with pytest.raises((DocumentInvalid, FindingsInvalid), match="asks for the device"):
        read(tmp_path, PERFORMANCE._replace(text=PERFORMANCE.text.replace("-g h100", "")))


@pytest.mark.parametrize(
    ("words", "fields", "workload", "dealt"),
    [
        ("-m kimi -mr kimi_k2 -ng 1024 -c bf16", {"zero_stage": 1}, {"optimizer": "muon"}, True),
        (
            "-m qwen -mr qwen3_30b_a3b -ng 16 -c fp8_cs",
            {"ep": 16, "dispatcher": "hybridep"},
            {"precision": "fp8"},
            False,
        ),
        (
            "-m deepseek -mr deepseek_v3 -ng 1024 -c fp8_sc",
            {"overlap_grad_reduce": False, "overlap_param_gather": True},
            {"fp8_recipe": "blockwise"},
            False,
        ),
    ],
)
def test_recipes_of_the_release_are_runs_of_its_space(
    tmp_path: Path, *, words: str, fields: dict[str, Any], workload: dict[str, Any], dealt: bool
) -> None:
    """They are estimated: no rule of the space refuses what NVIDIA measures."""
    file = tmp_path / "launch.sh"
    file.write_text(f"python scripts/performance/setup_experiment.py {words} -g h100\n", encoding="utf-8")
    job = read_script(SaidScript(str(file)))
    assert {name: job.strategy.get(name) for name in fields} == fields
    assert {name: job.workload.get(name) for name in workload} == workload
    assert any("dist_muon" in line for line in job.arguments.not_modelled) is dealt
    devices = job.num_devices or 8
    strategy, _ = complete_strategy(script_strategy(job), devices, job.workload["global_batch_size"])
    asked = Problem(
        model=job.model,
        cluster=load_cluster("dgx-h100", devices),
        workload=Workload.model_validate(job.workload),
        constraints=Constraints(backends=("megatron-bridge",)),
    )
    assert backend_findings(asked, strategy, None, None, launched=True) == []


def test_every_recipe_of_the_release_is_in_the_table() -> None:
    names = recipe_names()
    assert len(names) > 800
    for name in names:
        found = recipe_named(name)
        assert found is not None
        assert {"hf", "provider"} & found.settings.keys(), name
        assert "train.global_batch_size" in found.settings, name


def test_every_field_of_a_configuration_is_in_one_list() -> None:
    for section, names in section_fields().items():
        for name in names:
            path = f"{section}.{name}" if section else name
            assert list_of(path) in ("used", "no_influence", "not_modelled"), path
    assert list_of("model.no_such_field") == "unknown"


@pytest.mark.parametrize(
    ("lines", "optimizer", "states"),
    [
        ("", "adam_precision_aware", None),
        ("\n    cfg.optimizer.exp_avg_dtype = torch.bfloat16", "adam_precision_aware", ("bf16", "fp32", "fp32")),
        (
            "\n    cfg.optimizer.exp_avg_dtype = torch.uint8\n    cfg.optimizer.exp_avg_sq_dtype = torch.float16"
            "\n    cfg.optimizer.main_params_dtype = torch.float16",
            "adam_precision_aware",
            ("fp8", "fp16", "fp16"),
        ),
        (
            "\n    cfg.optimizer.exp_avg_dtype = torch.bfloat16\n    cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16",
            "adam_bf16_states",
            None,
        ),
    ],
)
def test_a_precision_aware_optimizer_is_read_as_megatrons_scripts_are(
    tmp_path: Path, lines: str, optimizer: str, states: tuple[str, str, str] | None
) -> None:
    switch = f"    cfg.optimizer.use_precision_aware_optimizer = True{lines}\n    cfg.logger.log_interval = 1\n"
    text = "import torch\n" + ASSIGNED.text.replace("    cfg.logger.log_interval = 1\n", switch)
    workload = read(tmp_path, ASSIGNED._replace(text=text)).workload
    assert workload["optimizer"] == optimizer
    said = workload.get("optimizer_states")
    assert said == (states and dict(zip(("first", "second", "master"), states, strict=True)))


@pytest.mark.parametrize(
    ("states", "written"),
    [
        (None, "STATES = {}\n"),
        (
            {"first": "fp8", "second": "fp16", "master": "fp16"},
            'STATES = {"exp_avg_dtype": torch.uint8, "exp_avg_sq_dtype": torch.float16, '
            '"main_params_dtype": torch.float16}\n',
        ),
    ],
)
def test_a_precision_aware_optimizer_is_written(states: dict[str, str] | None, written: str) -> None:
    workload = {"global_batch_size": 2, "sequence_length": 4096, "optimizer": "adam_precision_aware"}
    said = Workload.model_validate(workload | {"optimizer_states": states})
    files = write(make_plan(Strategy(dp_shard=2, zero_stage=1), workload=said), BRIDGE_VERSION).files
    assert written in files[RECIPE_FILE]
    assert "optimizer.use_precision_aware_optimizer=true" in files[OVERRIDES_FILE]
