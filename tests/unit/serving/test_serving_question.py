"""Questions: what is read, and one clear error each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.cli.commands.serving.question import ServingFlags, question_of
from planner.errors import DocumentInvalid
from planner.operations.reading import read_yaml
from planner.operations.serving import (
    SERVING_ESTIMATE,
    ServingEstimateRequest,
    ServingPlanRequest,
    serving_problem,
)
from planner.serving.checkpoint import checkpoint_formats
from planner.serving.lengths_text import parse_lengths
from planner.serving.request_trace import read_request_trace
from planner.serving.text import parse_groups

EXAMPLES = Path(__file__).parents[3] / "examples" / "serving"
QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": "dgx-h100",
    "devices": 8,
    "traffic": {"input_tokens": {"mean": 1000}, "output_tokens": {"mean": 100}},
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"objective": "fewest_devices"}, "needs requests_per_s"),
    ({"constraints": {"max_devices": 9}}, "the cluster has 8 devices"),
    ({"constraints": {"engines": ["tgi"]}}, "no engine 'tgi'"),
    ({"constraints": {"pins": {"zz": 2}}}, "zz cannot be pinned"),
    ({"constraints": {"pins": {"tp": True}}}, "a degree is a whole number"),
    ({"constraints": {"pins": {"tp": 0}}}, "a degree is a whole number"),
    ({"constraints": {"pins": {"max_num_sequences": "abc"}}}, "max_num_sequences = 'abc' cannot be pinned"),
    ({"traffic": {"input_tokens": {"mean": 200_000}, "output_tokens": {"mean": 100}}}, "longer than the 131,072"),
    ({"model": "t5-11b"}, "no decoder-only language model"),
]


def asked(**more: Any) -> ServingPlanRequest:
    return ServingPlanRequest.model_validate({**QUESTION, **more})


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _problem(change)


def _problem(change: dict[str, Any]) -> object:
    try:
        return serving_problem(asked(**change))
    except DocumentInvalid as error:
        raise ValueError(str(error)) from None


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (None, ("bf16", None)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8_block", None)),
        ({"quant_method": "mxfp4"}, ("bf16", "mxfp4")),
        ({"quant_method": "awq", "bits": 4}, ("int4", None)),
        ({"quant_method": "gptq", "bits": 8}, ("int8", None)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, ("nvfp4", None)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
            },
            ("fp8", None),
        ),
    ],
)
def test_formats_of_a_checkpoint(said: dict[str, Any] | None, wanted: tuple[str, str | None]) -> None:
    assert checkpoint_formats({"quantization_config": said}) == wanted


def test_a_checkpoint_of_an_unknown_method_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="quantised by bitsandbytes"):
        checkpoint_formats({"quantization_config": {"quant_method": "bitsandbytes"}})


def test_lengths_as_text() -> None:
    assert parse_lengths("4000", "x").mean == 4000
    assert (parse_lengths("100:200", "x").low, parse_lengths("mean:900+spread:0.5", "x").kind) == (100, "lognormal")
    table = parse_lengths("p50:1000+p90:5000", "x")
    assert (table.kind, min(table.tokens), max(table.tokens)) == ("table", 1000, 5000)
    for text in ("many", "p50:1000+p90:10", "mean:5", "5:1"):
        with pytest.raises(DocumentInvalid):
            parse_lengths(text, "--input-tokens")


def test_a_trace_gives_lengths_and_a_rate() -> None:
    lines = ['{"timestamp": 0, "input_length": 10, "output_length": 2}'] + [
        f'{{"timestamp": {at * 500}, "input_length": {at * 10}, "output_length": 2}}' for at in range(1, 201)
    ]
    trace = read_request_trace("\n".join(lines), "t.jsonl")
    assert trace.num_requests == 201
    assert trace.requests_per_s == pytest.approx(2.0)
    assert len(trace.input_tokens.tokens) <= 64
    assert trace.output_tokens.mean == 2
    table = read_request_trace("input_tokens,output_tokens\n5,6\n7,8\n", "t.csv")
    assert (table.input_tokens.tokens, table.requests_per_s) == ((5, 7), None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no request"),
        ('{"input_tokens": 1}', "no output_tokens"),
        ("input_tokens,output_tokens\n0,6\n", "input_tokens = 0"),
        ('{"input_tokens": 1, "output_tokens": 1, "arrival_s": 0}\n{"input_tokens": 1, "output_tokens": 1}', "1 of 2"),
        ("{nonsense", "no JSON"),
    ],
)
def test_what_is_wrong_in_a_trace_is_said(text: str, words: str) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        read_request_trace(text, "t")


def test_groups_as_text() -> None:
    (group,) = parse_groups("2*tp=4,ep=4,max_num_sequences=64", "--layout")
    assert (group.num_instances, group.layout.ep, group.settings.max_num_sequences) == (2, 4, 64)
    prefill, decode = parse_groups("prefill:3*tp=2 + decode:tp=8", "--layout")
    assert (prefill.role, prefill.num_instances, decode.num_instances) == ("prefill", 3, 1)
    for text in ("tp", "tp=2,tp=4", "drafts:tp=2", "tpp=2", "tp=3.5"):
        with pytest.raises(DocumentInvalid):
            parse_groups(text, "--layout")


def read(text: str, folder: Path, **flags: Any) -> ServingPlanRequest:
    (folder / "question.yaml").write_text(f"model: llama-3.1-8b\ncluster: dgx-h100\n{text}", encoding="utf-8")
    return question_of(folder / "question.yaml", ServingFlags(**flags), ServingPlanRequest)


def test_lengths_in_a_file_are_written_as_on_the_command_line(tmp_path: Path) -> None:
    asked = read("traffic: {input_tokens: 4000, output_tokens: '100:300'}\n", tmp_path)
    assert (asked.traffic.input_tokens.mean, asked.traffic.output_tokens.high) == (4000, 300)


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        ("traffic: 5\n", {}, "traffic is a mapping"),
        ("traffic: {input_tokens: 4, output_tokens: 4}\n", {"concurrency": -1}, "-1 is not a positive number"),
        ("traffic: {input_tokens: 4, output_tokens: 4}\n", {"concurrency": 1, "requests_per_s": 2.0}, "in flight or"),
        ("traffic: {input_tokens: many, output_tokens: 4}\n", {}, "'many' says no lengths"),
    ],
)
def test_what_is_wrong_in_a_file_or_a_flag_is_said(
    text: str, flags: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        read(text, tmp_path, **flags)


def test_a_deployment_that_cannot_be_started_says_why() -> None:
    data = {**QUESTION, "groups": [{"num_instances": 2, "layout": {"tp": 8}}], "engine": "vllm"}
    found = SERVING_ESTIMATE.work(None, ServingEstimateRequest.model_validate(data))  # type: ignore[arg-type]
    assert found.refused == ("it takes 16 devices; the question has 8",)
    small = data | {"model": "llama-3.1-70b", "groups": [{"num_instances": 8}]}
    alone = SERVING_ESTIMATE.work(None, ServingEstimateRequest.model_validate(small))  # type: ignore[arg-type]
    assert alone.line.prediction.reason == "weights take 131.4 GiB of a device that has 79.2 GiB"


@pytest.mark.parametrize("name", [path.name for path in sorted(EXAMPLES.glob("*.yaml"))])
def test_the_examples_are_questions(name: str) -> None:
    problem = serving_problem(ServingPlanRequest.model_validate(read_yaml(EXAMPLES / name)))
    assert problem.num_devices in {4, 8, 32, 104}
    assert problem.checkpoint == ("fp8_block" if "deepseek" in name else "bf16")
