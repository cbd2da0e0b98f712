"""A profile says what the store holds: one environment at a time, siblings marked, kept and found by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profiles.catalogue import load_device
from profiles.errors import DocumentInvalid, NotFound, ProfileMissing
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.store import ObservationStore
from profiles.observations.environment import Environment
from profiles.observations.records import CollectiveObservation, OperatorObservation
from profiles.observations.source import Source
from profiles.observations.timing import Timing
from profiles.prediction.build_profile import build_profile
from profiles.prediction.profile import CollectiveKey, Profile
from profiles.prediction.profile_file import identified, load, save
from profiles.prediction.profile_folder import (
    find_profile,
    keep,
    profile_of_device,
    referenced_profile,
    sibling_devices,
)
from profiles.prediction.reference import ProfileReference
from profiles.prediction.rungs import Rung

H100, H200 = load_device("h100-sxm5-80gb"), load_device("h200-sxm-141gb")
M, N, K = np.array([2048.0]), np.array([4096.0]), np.array([8192.0])


def matmuls(factor: float, kernel: str = "torch_linear", dtype: str = "bf16") -> list[OperatorObservation]:
    return [
        OperatorObservation(
            operator="matmul",
            name="gemm",
            timing=Timing(factor * 2.0 * m * n * k / 600e12, "mean"),
            phase="forward",
            dtype=dtype,
            shape={"m": m, "n": n, "k": k},
            detail={"kernel_source": kernel},
        )
        for m in (1024, 2048, 4096)
        for n in (4096, 8192)
        for k in (4096, 8192)
    ]


def stored(
    folder: Path,
    operators: list[OperatorObservation],
    *,
    version: str = "1.0",
    device: str = H100.name,
    collectives: list[CollectiveObservation] | None = None,
) -> ObservationStore:
    store = ObservationStore(folder)
    environment = Environment(device=device, framework="vllm", framework_version=version)
    imported = Imported("test", batches=[Batch(environment, operators=operators, collectives=collectives or [])])
    store.add(imported, Source(kind="imported", format="test"))
    return store


def seconds(profile: Profile) -> float:
    return float(profile.matmul(M, N, K, "bf16").time_s[0])


def test_a_stored_shape_comes_back_exactly(tmp_path: Path) -> None:
    profile = build_profile(stored(tmp_path, matmuls(1.0)), H100)
    found = profile.matmul(M, N, K, "bf16")
    assert found.time_s[0] == pytest.approx(2.0 * 2048 * 4096 * 8192 / 600e12)
    assert found.rung[0] == Rung.EXACT
    assert profile.num_points == 12


def test_two_environments_are_never_averaged_and_their_distance_is_the_spread_of_a_hit(tmp_path: Path) -> None:
    stored(tmp_path, matmuls(1.0), version="1.0")
    profile = build_profile(stored(tmp_path, matmuls(1.1), version="2.0"), H100)
    assert seconds(profile) == pytest.approx(1.1 * 2.0 * 2048 * 4096 * 8192 / 600e12)
    (table,) = (table for key, table in profile.operators.items() if key[1] == "bf16")
    assert table.curves.sigma_exact == pytest.approx(np.log(1.1) / 1.2816 / np.sqrt(2.0))


def test_the_kernel_that_training_frameworks_call_speaks(tmp_path: Path) -> None:
    stored(tmp_path, matmuls(0.5, kernel="cutlass_special"), version="9.0")
    profile = build_profile(stored(tmp_path, matmuls(1.0, kernel="torch.nn.functional.linear"), version="1.0"), H100)
    assert seconds(profile) == pytest.approx(2.0 * 2048 * 4096 * 8192 / 600e12)


def test_a_sibling_lends_its_utilisation_and_the_rung_says_so(tmp_path: Path) -> None:
    store = stored(tmp_path, matmuls(1.0))
    profile = build_profile(store, H200, sibling_devices(H200))
    found = profile.matmul(M, N, K, "bf16")
    assert found.rung[0] == Rung.TRANSFER
    assert found.sigma[0] > build_profile(store, H100).matmul(M, N, K, "bf16").sigma[0]
    assert build_profile(store, H200).matmul(M, N, K, "bf16").rung[0] == Rung.MISSING


def test_fp16_stands_in_for_bf16_and_the_rung_says_so(tmp_path: Path) -> None:
    profile = build_profile(stored(tmp_path, matmuls(1.0, dtype="fp16")), H100)
    assert profile.matmul(M, N, K, "bf16").rung[0] == Rung.TRANSFER
    assert profile.matmul(M, N, K, "fp8").rung[0] == Rung.MISSING


def test_failures_and_windowed_or_cross_format_attention_are_not_looked_up(tmp_path: Path) -> None:
    failed = OperatorObservation("matmul", "gemm", None, dtype="bf16", shape={"m": 1, "n": 1, "k": 1}, ok=False)
    shape = {
        "batch_size": 1, "query_length": 4096, "num_heads": 8, "num_kv_heads": 8, "head_dim": 128, "window": 512,
    }  # fmt: skip
    windowed = OperatorObservation(
        "attention", "flash", Timing(1e-3, "mean"), "forward", "bf16", shape, causal=True, detail={}
    )
    profile = build_profile(stored(tmp_path, [failed, windowed]), H100)
    assert not profile.operators


def test_collectives_become_one_curve_a_group_shape(tmp_path: Path) -> None:
    def run(size: int, group: int, operation: str = "all_reduce") -> CollectiveObservation:
        timing = Timing(1e-5 + size * group / 3e12, "mean")
        return CollectiveObservation(operation, size, group, timing, "bf16", num_nodes=1)  # type: ignore[arg-type]

    observations = [run(2**power, group) for power in range(10, 30, 2) for group in (2, 8)]
    in_a_trace = CollectiveObservation("all_reduce", 2**20, 4, Timing(1.0, "max"), "bf16", launch="in_situ")
    profile = build_profile(stored(tmp_path, [], collectives=[*observations, in_a_trace]), H100)
    assert set(profile.collectives) == {CollectiveKey("all_reduce", 2, 1), CollectiveKey("all_reduce", 8, 1)}
    found = profile.collectives[CollectiveKey("all_reduce", 8, 1)].predict(np.array([2.0**20]))
    assert found.time_s[0] == pytest.approx(1e-5 + 2**20 * 8 / 3e12)


def test_a_saved_profile_is_the_same_profile(tmp_path: Path) -> None:
    profile = identified(build_profile(stored(tmp_path, matmuls(1.0)), H100))
    again = load(save(profile, tmp_path / "fits"))
    assert again.profile_id == profile.profile_id
    wanted = np.array([1500.0]), np.array([5000.0]), np.array([6000.0])
    np.testing.assert_array_equal(again.matmul(*wanted, "bf16").time_s, profile.matmul(*wanted, "bf16").time_s)


def test_other_measurements_are_another_profile(tmp_path: Path) -> None:
    first = identified(build_profile(stored(tmp_path / "a", matmuls(1.0)), H100))
    second = identified(build_profile(stored(tmp_path / "b", matmuls(1.01)), H100))
    assert first.profile_id != second.profile_id


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    profile = identified(build_profile(stored(tmp_path, matmuls(1.0)), H100))
    path = save(profile, tmp_path / "fits")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DocumentInvalid, match="damaged"):
        load(path)


def test_a_file_under_another_name_is_refused(tmp_path: Path) -> None:
    profile = identified(build_profile(stored(tmp_path, matmuls(1.0)), H100))
    path = save(profile, tmp_path / "fits")
    other = path.with_name("0" * 64 + ".profile.npz")
    path.rename(other)
    with pytest.raises(DocumentInvalid, match="not what its name says"):
        load(other)


def test_the_profile_of_a_device_is_built_once_and_again_after_an_import(tmp_path: Path) -> None:
    stored(tmp_path, matmuls(1.0))
    first = profile_of_device(H100, tmp_path)
    second = profile_of_device(H100, tmp_path)
    assert first is not None
    assert second is not None
    assert first.profile_id == second.profile_id
    stored(tmp_path, matmuls(1.2), version="3.0")
    third = profile_of_device(H100, tmp_path)
    assert third is not None
    assert third.profile_id != first.profile_id


def test_nothing_stored_is_no_profile(tmp_path: Path) -> None:
    assert profile_of_device(H100, tmp_path) is None


def test_a_profile_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    profile = build_profile(stored(tmp_path, matmuls(1.0)), H100)
    reference = keep(profile, tmp_path)
    assert find_profile(reference.profile_id[:10], tmp_path).profile_id == reference.profile_id
    with pytest.raises(NotFound):
        find_profile("ffff", tmp_path)
    with pytest.raises(ProfileMissing):
        referenced_profile(ProfileReference(profile_id="0" * 64, device="x", num_points=1), tmp_path)


def test_memory_bound_operators_are_looked_up_by_the_bytes_they_move(tmp_path: Path) -> None:
    def norm(tokens: int) -> OperatorObservation:
        moved = 2 * tokens * 4096 * 2
        shape = {"num_tokens": tokens, "hidden_size": 4096}
        return OperatorObservation("norm", "rms_norm", Timing(5e-6 + moved / 2e12, "median"), "forward", "bf16", shape)

    profile = build_profile(stored(tmp_path, [norm(2**power) for power in range(6, 15)]), H100)
    moved = 2.0 * 3000 * 8192 * 2
    found = profile.moved("norm", np.array([moved]), "bf16")
    assert found.time_s[0] == pytest.approx(5e-6 + moved / 2e12, rel=0.05)
    assert profile.moved("activation", np.array([moved]), "bf16").rung[0] == Rung.MISSING


def test_a_gradient_has_a_table_of_its_own_where_it_was_measured(tmp_path: Path) -> None:
    slow = [
        OperatorObservation(
            "matmul", "linear", Timing(1.0, "median"), "wgrad", "bf16", {"m": m, "n": 4096, "k": 8192}, detail={}
        )
        for m in (1024, 2048, 4096)
    ]
    profile = build_profile(stored(tmp_path, [*matmuls(1.0), *slow]), H100)
    assert profile.matmul(M, N, K, "bf16", phase="wgrad").time_s[0] == pytest.approx(1.0)
    assert profile.matmul(M, N, K, "bf16", phase="dgrad").time_s[0] == pytest.approx(seconds(profile))


def test_grouped_products_take_their_own_table_and_else_the_plain_one_less_surely(tmp_path: Path) -> None:
    grouped = [
        OperatorObservation(
            "grouped_matmul",
            "experts",
            Timing(0.5 * m, "median"),
            "forward",
            "bf16",
            {"m": m, "n": 4096, "k": 8192, "num_groups": 8},
            detail={"routing": routing},
        )
        for m in (256, 512)
        for routing in ("balanced",)
    ]
    skewed = OperatorObservation(
        "grouped_matmul", "experts", Timing(9e3, "median"), "forward", "bf16",
        {"m": 256, "n": 4096, "k": 8192, "num_groups": 8}, detail={"routing": "power_law"},
    )  # fmt: skip
    eight = np.array([8.0])
    own = build_profile(stored(tmp_path / "own", [*matmuls(1.0), *grouped, skewed]), H100)
    assert own.matmul(np.array([256.0]), N, K, "bf16", eight).time_s[0] == pytest.approx(128.0)
    plain = build_profile(stored(tmp_path / "plain", matmuls(1.0)), H100)
    found = plain.matmul(np.array([256.0]), N, K, "bf16", eight)
    assert found.sigma[0] > plain.matmul(np.array([2048.0]), N, K, "bf16").sigma[0]
    assert found.time_s[0] > seconds(plain) * 0.9
