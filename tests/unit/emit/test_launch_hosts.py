"""Host lists: which texts are read in which order, and which are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.launch import LauncherName
from planner.backends.launch.hosts import load_hosts, read_hosts
from planner.backends.launch.launchers import LAUNCHERS, launch_files
from planner.backends.launch.rank_environment import rank_environment
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import launch_spec, why_order_matters
from planner.errors import DocumentInvalid
from planner.strategy.strategy import Strategy
from profiles.cluster import FabricLevel
from tests.mindspeed_plans import ascend_cluster
from tests.plan_factory import make_cluster, make_plan


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n10\nn2\n\n# rack 2\nn3 # spare\n", ("n10", "n2", "n3")),
        ("a slots=8\nb slots=8 max_slots=8\n", ("a", "b")),
        ("rack[1-2]-n[08-10]\n", tuple(f"rack{r}-n{n}" for r in (1, 2) for n in ("08", "09", "10"))),
        ("a,b[1,3-4].example.com\n", ("a", "b1.example.com", "b3.example.com", "b4.example.com")),
    ],
)
def test_lines_are_read_in_their_order(text: str, hosts: tuple[str, ...]) -> None:
    assert read_hosts(text) == hosts


def test_a_slurm_topology_is_walked_leaf_by_leaf() -> None:
    conf = (
        "SwitchName=leaf0 Nodes=n[4-5]\nSwitchName=leaf1 Nodes=n[0-1]\nSwitchName=leaf2 Nodes=n[2-3]\n"
        "SwitchName=spine0 Switches=leaf[1-2]\nSwitchName=spine1 Switches=leaf0\nSwitchName=core Switches=spine[0-1]\n"
    )
    assert read_hosts(conf) == ("n0", "n1", "n2", "n3", "n4", "n5")


def test_what_scontrol_shows_names_no_node_twice() -> None:
    shown = (
        "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]\n"
    )
    assert read_hosts(shown) == ("n0", "n1", "n2", "n3")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nb\na\n", "a is named twice"),
        ("a\nb;rm -rf /\n", "unexpected '-rf'"),
        ("a\n$(reboot)\n", "is no host name"),
        ("-a\n", "is no host name"),
        ("n[1-\n", "brackets do not match"),
        ("n[3-1]\n", "no rising range"),
        ("n[a-b]\n", "no range of numbers"),
        ("n[0-999999999]\n", "no rising range"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "form a ring"),
        ("SwitchName=a Nodes=n1\nNodeName=n2\n", "names none"),
    ],
)
def test_bad_lists_are_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_hosts(text, "--hosts x")
    assert words in caught.value.what


def test_an_absent_or_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="cannot read"):
        load_hosts(tmp_path / "absent")
    (tmp_path / "empty").write_text("# nobody\n")
    with pytest.raises(DocumentInvalid, match="names no hosts"):
        load_hosts(tmp_path / "empty")


@given(st.integers(0, 50), st.integers(1, 40), st.integers(1, 4))
def test_a_range_names_every_number_once(low: int, count: int, width: int) -> None:
    high = low + count - 1
    hosts = read_hosts(f"n[{low:0{width}d}-{high:0{width}d}]")
    assert [int(host[1:]) for host in hosts] == list(range(low, high + 1))


def test_fewer_hosts_than_nodes_are_refused_and_more_are_cut() -> None:
    plan = make_plan(Strategy(dp_shard=16), cluster=make_cluster(16))
    with pytest.raises(DocumentInvalid, match="1 hosts for 2 nodes"):
        launch_spec(plan, "train.sh", {}, settings=LaunchSettings(hosts=("a",)))
    assert launch_spec(plan, "train.sh", {}, settings=LaunchSettings(hosts=("c", "b", "a"))).hosts == ("c", "b")


@pytest.mark.parametrize(
    "bad",
    [
        {"switches": 0},
        {"network_tier": -1},
        {"image": "a b"},
        {"image": "x\n- evil"},
        {"namespace": "Upper"},
        {"files_claim": "a/b"},
        {"topology_label": "/x"},
        {"env": ("NCCL_IB_HCA",)},
        {"env": ("1X=a",)},
        {"env": ("RANK=3",)},
        {"env": ("A=1", "A=2")},
        {"env": ("A=two\nlines",)},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(DocumentInvalid):
        LaunchSettings(**bad)  # type: ignore[arg-type]


def test_settings_survive_the_manifest() -> None:
    settings = LaunchSettings(hosts=("b", "a"), switches=2, image="reg.example.com/t/x:1", namespace="team")
    settings = replace(settings, env=("NCCL_IB_HCA=mlx5", "EMPTY=", "QUOTED=a'b $HOME=1"))
    assert LaunchSettings.from_dict(settings.to_dict()) == settings
    assert LaunchSettings().to_dict() == {}
    with pytest.raises(DocumentInvalid, match="no launch settings"):
        LaunchSettings.from_dict({"color": "red"})


def test_the_order_matters_only_where_the_fabric_is_not_flat() -> None:
    flat = make_cluster(64)
    assert why_order_matters(flat, 8) == ""
    leaf = FabricLevel(name="leaf", num_nodes=4)
    two = flat.model_copy(update={"fabric": (leaf, FabricLevel(name="spine", num_nodes=64, oversubscription=2.0))})
    assert "a leaf switch holds 4 of the 8 nodes" in why_order_matters(two, 8)
    assert "2 times less" in why_order_matters(two, 8)
    assert why_order_matters(two, 4) == ""
    pool = flat.pools[0]
    wide = pool.model_copy(update={"scale_up": pool.scale_up.model_copy(update={"domain_size": 32})})
    assert "spans 4 nodes" in why_order_matters(flat.model_copy(update={"pools": (wide,)}), 8)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_gives_the_variables_to_the_ranks(launcher: LauncherName) -> None:
    settings = LaunchSettings(env=("NCCL_IB_HCA=mlx5_0,mlx5_1", "NCCL_DEBUG=INFO a'b"))
    cluster = ascend_cluster(16) if launcher == "ascendjob" else make_cluster(16)
    spec = launch_spec(make_plan(Strategy(dp_shard=16), cluster=cluster), "t.sh", {"OURS": "1"}, settings=settings)
    found = rank_environment(launch_files(spec, launcher).files)
    wanted = {"NCCL_IB_HCA": "mlx5_0,mlx5_1", "NCCL_DEBUG": "INFO a'b", "OURS": "1"}
    assert {name: found.get(name) for name in wanted} == wanted


def test_mpirun_carries_the_variables_to_other_nodes() -> None:
    settings = LaunchSettings(env=("NCCL_IB_HCA=mlx5",))
    spec = launch_spec(make_plan(Strategy(dp_shard=16), cluster=make_cluster(16)), "t.sh", {}, settings=settings)
    assert "-x NCCL_IB_HCA" in launch_files(spec, "mpirun").files["launch.sh"]


def test_a_variable_that_the_plan_needs_otherwise_is_refused() -> None:
    plan, settings = make_plan(Strategy(dp_shard=8)), LaunchSettings(env=("CUDA_DEVICE_MAX_CONNECTIONS=8",))
    with pytest.raises(DocumentInvalid, match="the plan needs CUDA_DEVICE_MAX_CONNECTIONS=1, --env says '8'"):
        launch_spec(plan, "t.sh", {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, settings=settings)
    assert launch_spec(plan, "t.sh", {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, settings=settings).environment


def test_the_manifest_of_an_emission_says_the_variables(tmp_path: Path) -> None:
    made = emit_plan(
        make_plan(Strategy(dp_shard=8), backend="megatron"), "torchrun", LaunchSettings(env=("NCCL_DEBUG=INFO",))
    )
    folder = write_emission(made, tmp_path / "out")
    assert check_directory(folder) == []
    assert json.loads((folder / "manifest.json").read_text())["launch"] == {"env": ["NCCL_DEBUG=INFO"]}
