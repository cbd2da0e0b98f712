"""MLPerf training logs: step times and facts, throughput only when its unit is given, broken events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.mlperf_log import FORMAT
from tests.importing import read, read_anyway, sample, written


def event(key: str, value: object, time_ms: int = 0, **metadata: object) -> str:
    """One line as ranks behind srun print it."""
    data = {"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return "0: :::MLLOG " + json.dumps({**data, "metadata": {"file": "/workspace/llm/callbacks.py", **metadata}}) + "\n"


HEAD = (
    event("submission_benchmark", "llama31_405b")
    + event("submission_platform", "64xDGX-H200")
    + event("global_batch_size", 1152)
    + event("max_sequence_length", 8192)
    + event("run_start", None, 1_000)
)


def test_step_times(tmp_path: Path) -> None:
    text = (
        HEAD
        + event("tracked_stats", {"train_step_time": 50.25, "reduced_train_loss": 4.0}, samples_count=2304)
        + event("tracked_stats", {"throughput": 23.0}, step=3456)
        + event("run_stop", None, 61_000, status="success")
    )
    imported = read(
        FORMAT, written(tmp_path, "result_0.txt", text), given={"num_devices": "512", "device": "h200-sxm-141gb"}
    )
    (batch,) = imported.batches
    (step,) = batch.iterations
    assert step.timing is not None
    assert step.timing.time_s == 50.25
    assert (step.global_batch_size, step.sequence_length, step.num_devices) == (1152, 8192, 512)
    assert (step.model, step.detail, step.row) == ("llama31_405b", {"samples_count": 2304}, 6)
    assert imported.facts["run_time_s"] == 60.0
    assert (imported.facts["status"], imported.facts["submission_platform"]) == ("success", "64xDGX-H200")
    assert imported.skipped == {"throughput in a unit that is not printed": 1}
    assert "callbacks" not in str(imported)


def test_throughput_only_with_its_unit(tmp_path: Path) -> None:
    file = written(tmp_path, "r.txt", HEAD + event("tracked_stats", {"throughput": 23.04}, step=3456))
    with pytest.raises(DocumentInvalid, match="train_step_time"):
        read(FORMAT, file)
    (step,) = read(FORMAT, file, given={"throughput_unit": "samples"}).batches[0].iterations
    assert step.timing is not None
    assert step.timing.time_s == pytest.approx(1152 / 23.04)


@pytest.mark.parametrize("value", [{"train_step_time": -1.0}, {"train_step_time": 0}, {"train_step_time": "x"}])
def test_broken_times(tmp_path: Path, value: object) -> None:
    text = HEAD + event("tracked_stats", value) + event("tracked_stats", {"train_step_time": 1.5})
    imported = read(FORMAT, written(tmp_path, "r.txt", text))
    assert [bad.where for bad in imported.bad_rows] == ["line 6"]
    assert [each.row for each in imported.batches[0].iterations] == [7]


@pytest.mark.parametrize(
    "line", [":::MLLOG {", ":::MLLOG " + "[" * 9999, ':::MLLOG {"namespace": ""}', ":::MLLOG {" + "[" * 50_000]
)
def test_broken_events(tmp_path: Path, line: str) -> None:
    imported = read(
        FORMAT, written(tmp_path, "r.txt", HEAD + line + "\n" + event("tracked_stats", {"train_step_time": 1.5}))
    )
    assert len(imported.bad_rows) <= 1
    assert len(imported.batches[0].iterations) == 1


def test_a_log_of_nccl_messages_is_left_to_its_own_importer() -> None:
    assert not FORMAT.matches(sample("nccl-debug/mlperf_v3.1_dell_2x4H100_bert.txt").head())


def _event(key: str, time_ms: int, **metadata: int) -> str:
    return "0: :::MLLOG " + json.dumps(
        {"namespace": "", "time_ms": time_ms, "event_type": "INTERVAL_START", "key": key, "value": None,
         "metadata": {"file": "/workspace/llm/callbacks.py", "lineno": 1, **metadata}}
    )  # fmt: skip


def test_training_blocks_give_mean_steps(tmp_path: Path) -> None:
    batch = ':::MLLOG {"namespace": "", "time_ms": 1, "key": "global_batch_size", "value": 8, "metadata": {}}'
    blocks = [(0, 0, 9000, 80), (20_000, 80, 60_000, 160), (70_000, 160, 75_000, 163), (80_000, 163, 81_000, 163)]
    lines = [batch]
    for start_ms, first, stop_ms, last in blocks:
        lines += [
            _event("block_start", start_ms, samples_count=first),
            _event("block_stop", stop_ms, samples_count=last),
        ]
    imported = read(FORMAT, written(tmp_path, "result_0.txt", "\n".join(lines)))
    (found,) = imported.batches[0].iterations
    assert found.timing is not None
    # 80 samples are ten steps, 40 s: evaluation between the blocks is not in it.
    assert (found.timing.time_s, found.timing.statistic, found.timing.num_samples) == (4.0, "mean", 10)
    assert (found.global_batch_size, found.row) == (8, 5)
    assert imported.skipped == {
        "first training block: it includes start-up": 1, "training block of a broken number of steps": 1,
    }  # fmt: skip


def test_blocks_without_a_batch_size_say_nothing(tmp_path: Path) -> None:
    lines = [_event("block_start", 0, samples_count=0), _event("block_stop", 9, samples_count=8)] * 3
    with pytest.raises(DocumentInvalid, match="global batch size"):
        read_anyway(FORMAT, [written(tmp_path, "result_0.txt", "\n".join(lines))])
