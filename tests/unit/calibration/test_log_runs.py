"""Stored training logs become runs, and each one that cannot says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.evidence.calibration.calibrate import CalibrationRun
from planner.evidence.calibration.log_runs import Said, log_runs
from planner.evidence.runs.prediction import Unmapped, predict_runs
from planner.model.load import load_model
from profiles.catalogue import load_cluster
from profiles.importing.format import ReadOptions
from profiles.importing.read_sources import read_sources
from profiles.observation_store.query import observations
from profiles.observation_store.store import ObservationStore
from tests.training_logs import MEGATRON, NO_ARGUMENTS, megatron_log

SAID = Said(load_model("llama-3.1-8b"), load_cluster("dgx-h100"))


def runs_of(folder: Path, text: str, said: Said = SAID) -> tuple[list[CalibrationRun], list[Unmapped]]:
    """A log through the real importer and store."""
    path = folder / "run.log"
    path.write_text(text)
    store = ObservationStore(folder / "store")
    for result in read_sources([path]):
        assert result.error is None, result.error
        assert result.imported is not None
        assert result.source is not None
        store.add(result.imported, result.source, result.given)
    return log_runs(observations(store, "iterations"), said)  # type: ignore[arg-type]  # iterations only


def test_a_megatron_log_with_its_arguments_is_one_run(tmp_path: Path) -> None:
    (run,), unmapped = runs_of(tmp_path, megatron_log())
    assert unmapped == []
    strategy = run.run.strategy
    assert (strategy.tp, strategy.pp, strategy.dp, strategy.micro_batch_size) == (4, 2, 2, 2)
    assert (strategy.sp, strategy.zero_stage, strategy.recompute) == (True, 1, "selective")
    assert strategy.global_batch_size == MEGATRON.global_batch_size
    assert run.run.workload.sequence_length == 8192
    assert (run.framework, run.framework_version, run.device) == ("megatron-lm", "", "h100-sxm5-80gb")
    assert run.run.cluster.num_devices == 16
    # The first reading includes start-up; the median of the rest is the run's time.
    assert run.run.row.measured_step_s == pytest.approx(4.2)
    assert run.run.row.measured_peak_bytes == pytest.approx(40_000 * 2**20)
    assert run.run.flavour.memory == "reserved"
    (prediction,), lost = predict_runs([run.run])
    assert lost == []
    assert 0.5 < prediction.step_time_s < 20


def test_the_version_that_the_user_says_fills_the_gap(tmp_path: Path) -> None:
    said = Said(SAID.model, SAID.cluster, software_version="core 0.12.0")
    (run,), _ = runs_of(tmp_path, megatron_log(), said)
    assert run.framework_version == "core 0.12.0"


def test_the_log_wins_over_what_is_said(tmp_path: Path) -> None:
    said = Said(SAID.model, SAID.cluster, {"tp": 1}, global_batch_size=8, sequence_length=64)
    (run,), _ = runs_of(tmp_path, megatron_log(), said)
    assert (run.run.strategy.tp, run.run.row.gbs, run.run.row.seq_len) == (4, 128, 8192)


def test_what_is_said_completes_a_log_without_arguments(tmp_path: Path) -> None:
    runs, (lost,) = runs_of(tmp_path, NO_ARGUMENTS)
    assert runs == []
    assert lost.reason == "the number of devices is not stated"
    said = Said(
        SAID.model, SAID.cluster, {"tp": 4, "pp": 2, "dp": 2, "micro_batch_size": 2, "sp": True}, sequence_length=8192
    )
    again = tmp_path / "again"
    again.mkdir()
    (run,), unmapped = runs_of(again, NO_ARGUMENTS, said)
    assert unmapped == []
    assert run.run.strategy.world_size == 16


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_layers": 40}, "the log's model has 40 layers, --model has 32"),
        ({"hidden_size": 5120}, "the log's model has 5120 hidden width, --model has 4096"),
        ({"world_size": 20}, "the degrees do not multiply to the devices"),
        ({"global_batch_size": 127}, "the batch does not divide over the data-parallel ranks"),
        ({"recompute_method": "block"}, "recompute of some layers only (method block) is not mapped"),
    ],
)
def test_a_log_that_does_not_fit_says_why(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    runs, (lost,) = runs_of(tmp_path, megatron_log(changes))
    assert runs == []
    assert lost.reason == reason


def test_a_log_of_another_device_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(megatron_log())
    store = ObservationStore(tmp_path / "store")
    for result in read_sources([path], options=ReadOptions({"device": "a100-sxm4-80gb"})):
        assert result.imported is not None
        assert result.source is not None
        store.add(result.imported, result.source, result.given)
    runs, (lost,) = log_runs(observations(store, "iterations"), SAID)  # type: ignore[arg-type]
    assert runs == []
    assert lost.reason == "the log is of a100-sxm4-80gb, --cluster has h100-sxm5-80gb"
