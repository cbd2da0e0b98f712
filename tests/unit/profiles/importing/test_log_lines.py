"""What launchers, terminals and documents put around a line is removed, and nothing else."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from profiles.importing.detect import detect, matching_formats
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.log_lines import clean_line, clean_lines, log_lines
from profiles.observations.records import CollectiveObservation, LinkObservation
from tests.importing import sample, written


@pytest.mark.parametrize(
    ("raw", "text", "rank"),
    [
        ("[1,3]<stdout>:   8  2", "  8  2", 3),
        ("[prterun-host-12@1,3]<stdout>: x", "x", 3),
        ("0:  # size", " # size", 0),
        (" 12: x", "x", 12),
        ("0:", "", 0),
        ("[rank5]: x", "x", 5),
        ("[default2]:x", "x", 2),
        ("[pod/launcher-abc/main] 2024-05-01T12:00:00.123456789Z 0: x", "x", 0),
        ("2024-05-01 12:00:00,123   8  2", "  8  2", None),
        ("[2024-05-01 12:00:00]", "", None),
        ("12:34:56 x", "x", None),
        ("May 01 12:34:56 gpu01 nccl[123]: x", "x", None),
        ("nccl-test-1  | x", "x", None),
        ("> > x", "x", None),
        ("\t[4mGPU0\tGPU1[0m", "\tGPU0\tGPU1", None),
        ("\x1b[4mGPU0\x1b[0m", "GPU0", None),
        ("8\xa0\xa02", "8  2", None),
        # Nothing of a program's own output goes.
        ('[16]\t"S-248"[1]', '[16]\t"S-248"[1]', None),
        ("8192 | 764 | 0.1", "8192 | 764 | 0.1", None),
        ("[10m] x", "[10m] x", None),
        ("gpu0:12:34 [4] NCCL INFO x", "gpu0:12:34 [4] NCCL INFO x", None),
        ("    GPU0: 5", "    GPU0: 5", None),
        ("State: Active", "State: Active", None),
    ],
)
def test_one_line(raw: str, text: str, rank: int | None) -> None:
    line = clean_line(7, raw)
    assert (line.number, line.text, line.rank) == (7, text, rank)


def test_hosts_before_all_lines_are_numbered() -> None:
    raw = [f"{host}: {text}" for text in ("GPU0", "GPU1", "words here", "more") for host in ("login", "gpu-a.site")]
    lines = list(clean_lines(list(enumerate(raw, start=1))))
    assert [line.text for line in lines[:3]] == ["GPU0", "GPU0", "GPU1"]
    assert [line.rank for line in lines[:2]] == [0, 1]


def test_fields_with_colons_are_no_hosts() -> None:
    raw = ["State: Active", "Rate: 400", "Link layer: InfiniBand", "Physical state: LinkUp", "Base lid: 3"]
    assert [line.text for line in clean_lines(list(enumerate(raw, start=1)))] == raw


def test_windows_line_ends_and_utf16_are_plain_text(tmp_path: Path) -> None:
    file = written(tmp_path, "a.log", "one\r\ntwo\r\n".encode("utf-16"))
    assert [line.text for line in log_lines(file)] == ["one", "two"]
    assert file.head().text == "one\ntwo\n"


def _observations(imported: Imported) -> list[object]:
    measured: list[object] = []
    for batch in imported.batches:
        measured += [_measured(each) for each in batch.collectives]
        measured += [_measured(each) for each in batch.links]
    return measured


def _measured(observation: CollectiveObservation | LinkObservation) -> tuple[object, ...]:
    """What is measured; lines of other programs shift the row."""
    if isinstance(observation, LinkObservation):
        return observation.kind, observation.source, observation.bandwidth_bytes_per_s, observation.latency_s
    return observation.operation, observation.size_bytes, observation.group_size, observation.timing


def _noisy(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        f"{line}\n[W socket.cpp:601] retrying" if index % 3 == 2 else line for index, line in enumerate(lines)
    )


_SAMPLES = [
    "nccl-tests/aws_trn1_nccom_allreduce.txt", "nccl-tests/cscs_gh200_8gpu_cxi_allreduce_v2.17.1.txt",
    "osu/azurehpc_imb_mpi1_pingpong.txt", "osu/nwtnni_allreduce-cdls_osu-allreduce-ignore.txt",
    "ucx/cloudai_ucc_perftest_alltoall_cuda.txt", "ucx/fxzjshm_ucx_perftest_b.txt",
    "ib/superbench_ib_loopback_all_sizes.log", "p2p/stas_p2pBandwidthLatencyTest_h100.txt",
    "p2p/superbench_nvbandwidth_results.log", "p2p/superbench_rocm_memory_h2d_bw.log",
    "p2p/superbench_gpcnet_network_test.log", "p2p/superbench_gpu_stream.log",
    "topo/msswift_npu_smi_topo_910b.txt", "topo/stelline_esc8000a_topo_m.txt",
    "topology/ibexporter_ibnetdiscover_p_test.out", "topology/superbench_ibstat.txt",
    "deepspeed/comms_log_summary_debug.txt",
]  # fmt: skip
_WRAPS: dict[str, Callable[[str], str | bytes]] = {
    "ansi": lambda text: "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n")),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "docker compose": lambda text: "\n".join(f"test-1  | {line}" for line in text.split("\n")),
    "gzip": lambda text: gzip.compress(text.encode()),
    "kubectl --timestamps": lambda text: "\n".join(f"2024-05-01T12:00:00.1Z {line}" for line in text.split("\n")),
    "mpirun": lambda text: "\n".join(f"[1,0]<stdout>:{line}" for line in text.split("\n")),
    "other programs between": _noisy,
    "pdsh": lambda text: "\n".join(f"gpu12: {line}" for line in text.split("\n")),
    "quotation": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "srun": lambda text: "\n".join(f" 0: {line}" for line in text.split("\n")),
    "torchrun": lambda text: "\n".join(f"[rank0]: {line}" for line in text.split("\n")),
    "utf-16": lambda text: text.encode("utf-16"),
}


@pytest.mark.parametrize("wrap", _WRAPS)
@pytest.mark.parametrize("name", _SAMPLES)
def test_real_outputs_are_read_alike_however_they_were_recorded(tmp_path: Path, name: str, wrap: str) -> None:
    original = sample(name)
    found, _ = detect(original)
    expected = found.read([original], ReadOptions())
    file = written(tmp_path, original.name, _WRAPS[wrap](original.text()))
    assert matching_formats(file.head())[0] is found
    imported = found.read([file], ReadOptions())
    assert _observations(imported) == _observations(expected)
    assert imported.topology == expected.topology
    assert len(imported.bad_rows) == len(expected.bad_rows)
    assert [each.environment for each in imported.batches] == [each.environment for each in expected.batches]


def test_a_table_behind_megabytes_of_other_output_is_found(tmp_path: Path) -> None:
    noise = "gpu-01:4021:4090 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" * 8000
    table = sample("nccl-tests/cscs_gh200_8gpu_cxi_allreduce_v2.17.1.txt").text()
    file = written(tmp_path, "slurm.out", noise + table)
    found, others = detect(file)
    assert (found.name, others) == ("nccl-tests", ["nccl-debug"])
    assert sum(len(each.collectives) for each in found.read([file], ReadOptions()).batches) == 50
    assert detect(written(tmp_path, "only.out", noise + "we report algbw and busbw\n"))[0].name == "nccl-debug"
