"""NCCL_DEBUG=INFO logs: versions, networks, ranks, choices, and the bench rows of BigScience."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_debug import FORMAT
from tests.importing import read, read_anyway, sample, written

NEW = """[2026-04-28 14:14:47] worker-1:2339:3738 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
[2026-04-28 14:14:47] worker-1:2339:3738 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
[2026-04-28 14:14:47] worker-1:2339:3738 [0] NCCL INFO Using network IB
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO comm 0x7fa30aa9e7e0 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0
[2026-04-28 14:14:48] worker-1:2340:3738 [1] NCCL INFO comm 0x7fa30aa9e7e1 rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0
[2026-04-28 14:14:48] worker-2:2339:3738 [0] NCCL INFO comm 0x7fa30aa9e7e2 rank 2 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0
[2026-04-28 14:14:48] worker-2:2340:3738 [1] NCCL INFO comm 0x7fa30aa9e7e3 rank 3 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
[2026-04-28 14:14:48] worker-1:2339:3738 [0] NCCL INFO NCCL_ALGO set by environment to Ring.
[2026-04-28 14:14:49] worker-1:2339:3738 [0] NCCL INFO AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}
[2026-04-28 14:14:49] worker-1:2339:3738 [0] NCCL INFO AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008
"""  # noqa: E501


def test_recent_log_with_time_stamps_and_choices(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "nccl.log", NEW))
    topology, facts = imported.topology, imported.facts
    assert topology is not None
    assert imported.tool_version == "2.27.3"
    assert topology.num_nodes == 2
    assert topology.devices_of_node == (2, 2)
    assert topology.rank_order == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert [(nic.kind, nic.direct) for nic in topology.nics] == [("roce", True)] * 2
    assert facts["choice_all_reduce_33554432"] == "RING/SIMPLE/32"
    assert facts["choice_all_gather_37756928"] == "RING/SIMPLE"
    assert facts["num_channels"] == 24
    assert facts["num_nvls_channels"] == 16
    assert facts["nvls_available"] is True
    assert facts["NCCL_ALGO"] == "Ring"
    assert facts["network"] == "IB"
    assert "eth0" not in str(facts)
    assert "worker" not in str(facts) + topology.canonical_json()


def test_bench_of_one_v100_node() -> None:
    imported = read(FORMAT, sample("nccl-debug/bigscience_n1_16gb_all_reduce_bench.txt"))
    (batch,) = imported.batches
    assert batch.environment.communication_library_version == "2.7.8"
    assert batch.environment.runtime_version == "CUDA 10.2"
    assert batch.environment.transport == "IB"
    assert (batch.environment.num_nodes, batch.environment.devices_per_node) == (1, 4)
    assert len(batch.collectives) == 4
    assert imported.skipped == {"first trial (warm-up) of the bench": 4}
    last = batch.collectives[-1]
    assert (last.operation, last.size_bytes, last.group_size, last.row) == ("all_reduce", 4_000_000_000, 4, 250)
    assert last.timing is not None
    assert last.timing.statistic == "max"
    assert last.timing.num_samples == 4
    assert (last.timing.time_s, last.timing.min_s) == (0.0481, 0.0480)
    assert imported.topology is not None
    assert imported.topology.devices_of_node == (4,)
    assert [flag.code for flag in imported.flags] == ["size-inferred"]


@pytest.mark.parametrize(
    ("name", "nodes", "per_node", "last_max_s"),
    [
        ("bigscience_all_reduce_bench-a100-n4.txt", 4, 8, 1.5312),
        ("bigscience_n16_32gb_all_reduce_bench.txt", 16, 4, 1.1624),
    ],
)
def test_bench_of_several_nodes(name: str, nodes: int, per_node: int, last_max_s: float) -> None:
    imported = read(FORMAT, sample(f"nccl-debug/{name}"))
    observation = imported.batches[0].collectives[-1]
    assert observation.size_bytes == 4_000_000_000
    assert observation.group_size == nodes * per_node
    assert (observation.num_nodes, observation.devices_per_node) == (nodes, per_node)
    assert observation.timing is not None
    assert observation.timing.time_s == last_max_s
    assert imported.topology is not None
    assert imported.topology.devices_of_node == (per_node,) * nodes


def test_training_log_of_two_h100_nodes() -> None:
    imported = read(FORMAT, sample("nccl-debug/mlperf_v3.1_dell_2x4H100_bert.txt"))
    topology = imported.topology
    assert topology is not None
    assert topology.num_nodes == 2
    assert topology.devices_of_node == (4, 4)
    assert len(topology.nics) == 4
    assert {nic.direct for nic in topology.nics} == {True}
    assert imported.facts["network"] == "IBext"
    assert imported.facts["num_channels"] == 16
    assert imported.facts["gpu_direct_rdma"] is True
    assert imported.batches == []


def test_partial_logs(tmp_path: Path) -> None:
    partial = "\n".join(line for line in NEW.splitlines() if "rank 3" not in line and "rank 2" not in line)
    topology = read(FORMAT, written(tmp_path, "p.log", partial)).topology
    assert topology is not None
    assert topology.num_nodes == 2
    assert topology.node is None
    assert topology.rank_order == ()
    with pytest.raises(DocumentInvalid, match="no communicator"):
        read(FORMAT, written(tmp_path, "n.log", "host:1:2 [0] NCCL INFO Bootstrap : Using eth0\n"))
    with pytest.raises(DocumentInvalid, match="no line"):
        read_anyway(FORMAT, [written(tmp_path, "o.log", "all is well\n")])


def test_broken_bench_rows_are_bad(tmp_path: Path) -> None:
    rows = "".join(
        f"{rank}:\n duration: {time} sec\n algo throughput: {64e9 / float(time)} bps, x\n"
        f" busbw: {32 / float(time)}  Gbps\n"
        for time in ("2.0000", "1.0000")
        for rank in (0, 1)
    )
    imported = read(FORMAT, written(tmp_path, "b.log", NEW + rows + "0:\n duration: nan sec\n1:\n duration: -1 sec\n"))
    assert [row.where for row in imported.bad_rows] == ["line 32", "line 34"]
    (observation,) = imported.batches[0].collectives
    assert (observation.group_size, observation.size_bytes) == (2, 4_000_000_000)
    unclear = rows.replace("algo throughput: 32", "algo throughput: 99")
    told = read(FORMAT, written(tmp_path, "u.log", NEW + unclear))
    assert told.batches == []
    assert told.flags[0].code == "size-unknown"
    assert read(FORMAT, written(tmp_path, "u.log", NEW + unclear), given={"size_bytes": "1000"}).batches


def test_long_lines_end_soon(tmp_path: Path) -> None:
    line = "host:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 " + "commId 0x1 " * 100_000
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "long.log", line)])
    assert not FORMAT.matches(written(tmp_path, "solid.log", "a:" * 100_000).head())
