"""The registry is the one list of back-ends: each is complete, and nothing else in the house names them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from planner.backends.asked import asked_software, physics_of, software_of
from planner.backends.backend import BackEnd, Release, Software
from planner.backends.emission.layout import layout_of
from planner.backends.folders.catalogue import validators
from planner.backends.folders.emit import emit_plan
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import LAUNCHERS
from planner.backends.registry import OURS, backends, files_of, names_with_files, physics_by_name, software, with_files
from planner.errors import NotFound
from planner.model.load import load_model
from planner.question.problem import ANY, Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.space import Space as SearchSpace
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster, load_device
from profiles.device import Vendor

REPOSITORY = Path(__file__).parents[2]
CLUSTERS = ("dgx-h100", "ascend-910b-8")
RELEASES = [(found, release) for found in OURS for release in found.releases]
FILES = [(found, release) for found, release in RELEASES if found.files is not None and not release.predicts_only]
FIELDS = frozenset(Strategy.__dataclass_fields__) | {"dp"}


def ids(value: object) -> str:
    return (
        value.name if isinstance(value, BackEnd) else value.version or "default" if isinstance(value, Release) else ""
    )


def question(found: BackEnd, release: Release) -> Problem:
    cluster = next(name for name in CLUSTERS if not found.vendors or _vendor(name) in found.vendors)
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster(cluster, 8),
        workload=Workload(global_batch_size=16, sequence_length=4096),
        constraints=Constraints(backends=(Software(found, release).spelled,)),
    )


def _vendor(cluster: str) -> Vendor:
    return load_cluster(cluster, 8).pools[0].device.vendor


def test_every_room_is_in_the_registry() -> None:
    rooms = {path.parent.name for path in (REPOSITORY / "planner" / "backends").glob("*/space.py")}
    assert {found.name.replace("-", "_") for found in OURS} == rooms
    assert set(backends()) >= {found.name for found in OURS}
    assert len({found.name for found in OURS}) == len(OURS)


@pytest.mark.parametrize("found", OURS, ids=ids)
def test_every_back_end_says_what_it_is(found: BackEnd) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", found.name)
    assert found.name != ANY
    assert found.title
    assert found.summary
    assert found.vendors <= set(get_args(Vendor))
    assert len({release.version for release in found.releases}) == len(found.releases) >= 1
    assert (found.files is None) <= (found.tiny_run is None and not found.validators())
    assert set(found.not_started_by) <= set(LAUNCHERS)
    if found.inside:
        assert backends()[found.inside].releases[0].physics == found.releases[0].physics


@pytest.mark.parametrize(("found", "release"), RELEASES, ids=ids)
def test_every_release_has_a_space_and_a_physics_of_its_own_name(found: BackEnd, release: Release) -> None:
    assert software(Software(found, release).spelled) == Software(found, release)
    columns, table = release.space.columns, release.space.rules
    assert set(columns.schedules) <= set(SCHEDULE_NAMES)
    assert columns.recompute
    assert columns.zero_stages
    assert columns.sequence_parallel
    assert len(SearchSpace(question(found, release), 8).cores) > 0
    rules = [*table.model_rules, *table.strategy_rules]
    assert len({rule.id for rule in rules}) == len(rules), "two rules of one id"
    assert all(rule.source for rule in rules)
    assert all(set(rule.fields) <= FIELDS for rule in rules)
    assert physics_by_name()[release.physics.name] == release.physics, "two physics of one name"
    assert release.physics.summary


def test_every_launcher_has_a_writer() -> None:
    assert get_args(LauncherName) == tuple(LAUNCHERS)


def test_what_is_asked_by_default_is_what_files_are_written_for() -> None:
    problem = question(OURS[0], OURS[0].releases[0])
    every = problem.model_copy(update={"constraints": Constraints()})
    assert tuple(each.name for each in asked_software(every)) == names_with_files()
    assert {each.name for each in with_files()} < set(backends()), "some only predict"


def test_validators_of_back_ends_are_in_the_catalogue() -> None:
    assert {each.name for found in OURS for each in found.validators()} <= set(validators())


@pytest.mark.parametrize(("found", "release"), FILES, ids=ids)
def test_a_plan_is_written_whole(found: BackEnd, release: Release) -> None:
    plan = find_plan(question(found, release), SearchOptions(top_k=0))
    assert (plan.backend, plan.release) == (found.name, release.version)
    assert physics_of(plan) == release.physics
    emission = emit_plan(plan, "torchrun")
    assert (emission.backend, emission.written.version) == (found.name, release.version)
    assert emission.plan == plan
    strategy, layout = files_of(software_of(plan)).read(emission.files)
    assert strategy == plan.chosen()
    assert layout == layout_of(plan)


@pytest.mark.parametrize(("found", "release"), [pair for pair in RELEASES if pair not in FILES], ids=ids)
def test_what_only_predicts_says_so(found: BackEnd, release: Release) -> None:
    with pytest.raises(NotFound, match="no files can be written") as caught:
        files_of(Software(found, release))
    assert names_with_files()[0] in str(caught.value.hint)


def test_devices_of_every_maker_that_is_named_are_in_the_catalogue() -> None:
    assert {load_device("h100-sxm5-80gb").vendor, _vendor("ascend-910b-8")} <= {
        vendor for found in OURS for vendor in found.vendors
    }


def names_in(source: str) -> Iterator[tuple[int, set[str]]]:
    """Literals (collections, calls, bodies of classes) that name several back-ends, by line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = [*(key for key in node.keys if key is not None), *node.values]
        elif isinstance(node, ast.Call):
            parts = node.args
        elif isinstance(node, ast.ClassDef):
            parts = [line.value for line in node.body if isinstance(line, ast.Assign)]
        else:
            continue
        flat = [inner for part in parts for inner in (part, *getattr(part, "elts", ()))]
        found = {str(each.value) for each in flat if isinstance(each, ast.Constant) and each.value in backends()}
        if len(found) > 1:
            yield node.lineno, found


def test_no_other_list_of_back_ends_stands_in_the_house() -> None:
    lists = {
        f"{path.relative_to(REPOSITORY)}:{line}": names
        for folder in ("planner", "api")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for line, names in names_in(path.read_text(encoding="utf-8"))
    }
    assert lists == {}


@pytest.mark.parametrize(
    "source",
    [
        'X = ("megatron", "deepspeed")',
        'X = {"a": 1, "native": 2, "maxtext": 3}',
        'X = {("maxtext", "ray"): 1, ("mindspeed", "ray"): 2}',
        'X = Literal["megatron", "torchtitan"]',
        'X = choice("megatron", "torchtitan")',
        'class X:\n    A = "megatron"\n    B = "deepspeed"\n',
    ],
)
def test_a_list_is_caught(source: str) -> None:
    assert list(names_in(source))
