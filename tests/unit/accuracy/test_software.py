"""A run's software is read from its own words; what they leave open widens its interval."""

from __future__ import annotations

import csv
import io

import pytest

from planner.evidence.runs.described_traits import described_traits
from planner.evidence.runs.flavours import FLAVOURS
from planner.evidence.runs.prediction import Prediction, predict_rows
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.row_strategy import traits_of_row, workload_of_row
from planner.evidence.runs.software import FACTS, NOTHING_SAID, UNKNOWN_SPREAD, described
from planner.evidence.runs.software_rules import library_rules, software_rules
from planner.evidence.runs.truth import SOFTWARE_COLUMNS, read_truth
from planner.question.training import EVERY_TARGET
from tests.accuracy_rows import PLAIN, csv_text, rows_of

NF4 = "QLoRA r=16 on q,k,v,o with frozen base NF4-4bit; HF SFTTrainer (fms-acceleration, FlashAttention-2)"


@pytest.mark.parametrize(
    ("notes", "fact", "value"),
    [
        (NF4, "library", "hf-trainer"),
        (NF4, "training", "qlora"),
        (NF4, "quantization", "nf4-dq"),
        (NF4, "attention", "flash2"),
        ("LoRA r=8 (q,v) single GPU, quantization bnb.nf4", "quantization", "nf4"),
        ("RL trainer step, full finetune (FSDP2, torch.compile, flash_attention_3)", "attention", "best"),
        ("RL trainer step, full finetune (FSDP2, torch.compile, flash_attention_3)", "compiled", "yes"),
        ("RL trainer step, full finetune (FSDP2, torch.compile)", "loss", "log-probabilities"),
        ("full finetune; optimizer in backward, AdamW8bit", "states", "8bit"),
        ("full finetune; optimizer in backward, AdamW8bit", "step_in_backward", "yes"),
        ("mem: torch peak allocated, nvidia-smi 77256 MiB mean", "memory_figure", "allocated"),
        ("memory = nvidia-smi", "memory_figure", "process"),
        ("max kv-lora rank 512", "training", ""),
        ("NeMo 24.07 final; pretrain", "library", "nemo-2.1"),
        ('release v24.11.1; table "Grok 1 314b"', "library", "nemo-2.1"),
        ('release v25.02; table "Grok 1 314b"', "library", "nemo-2.2"),
        ("NeMo container 25.09 NeMo Container", "library", "megatron-bridge"),
        ("NeMo container 25.04", "library", "nemo"),
        ("export CUDA_LAUNCH_BLOCKING=1", "launches", "blocking"),
    ],
)
def test_facts_are_read_from_the_notes(notes: str, fact: str, value: str) -> None:
    (row,) = rows_of({"notes": notes})
    assert getattr(described(row), fact) == value


def test_a_column_of_the_facts_name_goes_before_the_notes() -> None:
    text = csv_text({"notes": "LoRA r=16; torch.compile"})
    header, line = list(csv.reader(io.StringIO(text)))
    stated = [*header, "training", "compiled"], [*line, "full", ""]
    out = io.StringIO()
    csv.writer(out).writerows(stated)
    (row,) = read_truth(out.getvalue(), "truth.csv")
    said = described(row)
    assert (said.training, said.compiled) == ("full", "yes")
    assert dict(said.origin)["training"] == "column training"


def test_an_eight_bit_row_names_its_scales() -> None:
    rows = rows_of({"precision": "fp8"}, {"precision": "fp8-rowwise"}, {"notes": "scaling=rowwise_with_gw_hp"})
    assert [traits_of_row(row, flavour_of_row(row)).rowwise_scales for row in rows] == [False, True, True]


def test_what_a_publication_says_outside_its_rows_can_be_left_out() -> None:
    (row,) = rows_of({"source": "arXiv:2104.04473 Table 1"})
    assert described(row).library == "megatron-2021"
    assert described(row, publications=False).library == ""


@pytest.mark.parametrize(
    ("place", "launches"),
    [
        ('chronicles-prequel.md@9e64edec2a section "fp16"', ""),
        ('chronicles-prequel.md@9e64edec2a section "48 node contenders"', "blocking"),
        ("README.md@9e64edec2a line 661", "blocking"),
    ],
)
def test_launches_of_a_training_block_from_the_day_it_hung(place: str, launches: str) -> None:
    (row,) = rows_of({"source": f"github:bigscience-workshop/bigscience:train/tr11-176B-ml/{place}"})
    assert described(row).launches == launches
    assert described_traits(flavour_of_row(row), described(row)).blocking_launches == bool(launches)


def test_rules_and_columns_and_flavours_speak_of_the_same_facts() -> None:
    assert {rule.fact for rule in software_rules()} <= set(FACTS) == set(SOFTWARE_COLUMNS)
    known = dict(FLAVOURS)
    assert {rule.value for rule in library_rules()} == set(known)


def test_an_unknown_software_has_a_wider_interval_than_a_known_one() -> None:
    known, unknown = _predicted({"notes": "torchtune recipe"}, {"notes": ""})
    assert NOTHING_SAID.unknown == tuple(UNKNOWN_SPREAD)
    assert unknown.software.unknown_spread > known.software.unknown_spread == 0.0
    assert _width(unknown) > _width(known)


def test_a_device_without_published_steps_has_a_wider_interval() -> None:
    usual, new = _predicted({"notes": "HF SFTTrainer"}, {"notes": "HF SFTTrainer", "device": "MI300X"})
    assert _width(new) > 1.5 * _width(usual)
    unstudied = [{"notes": "litgpt", "device": device} for device in ("H100-SXM-80GB", "MI300X")]
    usual, new = _predicted(*unstudied)
    assert _width(new) > 1.03 * _width(usual), "a spread that nobody studied still grows on such a device"


def test_the_memory_figure_is_what_the_row_says() -> None:
    rows = rows_of(
        {"notes": "HF Trainer; peak allocated"}, {"notes": "HF Trainer; max reserved"}, {"notes": "HF Trainer"}
    )
    assert [flavour_of_row(row).memory for row in rows] == ["allocated", "reserved", "allocated"]


def test_a_whole_number_of_gib_is_read_off_nvidia_smi() -> None:
    whole, counted = rows_of({"peak_mem_gib": "57"}, {"peak_mem_gib": "57.3"})
    assert (described(whole).memory_figure, described(counted).memory_figure) == ("process", "")


def _predicted(*changes: dict[str, str]) -> list[Prediction]:
    run = {name: value for name, value in PLAIN.items() if name != "id"}
    one = {**run, "num_devices": "8", "tp": "1", "pp": "1", "dp": "8", "zero_or_fsdp": "fsdp"}
    predictions, unmapped = predict_rows(rows_of(*({**one, **change} for change in changes)))
    assert not unmapped
    return predictions


def _width(prediction: Prediction) -> float:
    low_s, high_s = prediction.interval_s
    return high_s / low_s


@pytest.mark.parametrize(
    ("notes", "targets"),
    [
        ("NeMo Framework Launcher examples; finetune LoRA", ("q", "k", "v")),
        ("NeMo container 26.06 NeMo Container; LoRA Performance", ("q", "k", "v")),
        ("NeMo 24.07 final; LoRA r=16 alpha=32 on attention (linear_qkv+linear_proj)", ("q", "k", "v", "o")),
        ("HF Trainer, LoRA r=8", EVERY_TARGET),
    ],
)
def test_recipes_of_nvidia_adapt_queries_keys_and_values(notes: str, targets: tuple[str, ...]) -> None:
    (row,) = rows_of({"notes": notes})
    assert workload_of_row(row, flavour_of_row(row)).trained.targets == targets
