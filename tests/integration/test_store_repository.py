"""The store on both databases: every test runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text

from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.store import open_store, software_signature
from planner.store.address import database_url as sqlalchemy_url
from planner.store.engine import make_engine
from planner.store.errors import AmbiguousPlan, PlanUnreadable, StoreCorrupt
from planner.store.repository import Store
from planner.store.schema import ensure_schema
from planner.strategy.strategy import Strategy
from profiles.errors import Conflict, DocumentInvalid, NotFound
from profiles.prediction.reference import ProfileReference
from tests.plan_factory import make_cluster, make_model, make_plan

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Ticks:
    """A clock that advances one second a look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = make_engine(sqlalchemy_url(database_url))
    ensure_schema(engine)
    with Store(engine, clock=Ticks()) as opened:
        yield opened


@pytest.fixture
def sql(database_url: str) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Plain SQL on the same database, past the store."""
    engine = create_engine(sqlalchemy_url(database_url))

    def run(statement: str) -> list[tuple[object, ...]]:
        with engine.begin() as connection:
            result = connection.execute(text(statement))
            return [tuple(row) for row in result] if result.returns_rows else []

    yield run
    engine.dispose()


def plan_with_layers(num_layers: int) -> Plan:
    return make_plan(model=make_model(num_layers))


def test_a_stored_plan_comes_back_equal_and_byte_identical(store: Store) -> None:
    plan = make_plan(Strategy(tp=2, pp=2, dp_shard=2, num_microbatches=4, recompute="full"))
    plan_id = store.save_plan(plan, 0.5)
    assert plan_id == plan.plan_id
    back = store.get_plan(plan_id)
    assert back == plan
    assert back.canonical_json() == plan.canonical_json()


def test_storing_twice_changes_nothing(store: Store, sql: Callable[[str], list[tuple[object, ...]]]) -> None:
    plan = make_plan()
    store.save_plan(plan, 0.5)
    first = store.list_plans()
    store.save_plan(plan, 99.0)
    assert store.list_plans() == first
    assert first[0].created_at == START + timedelta(seconds=1)
    assert sql("SELECT wall_s FROM searches") == [(0.5,)]
    assert sql("SELECT count(*) FROM documents") == [(6,)]


def test_shared_documents_are_stored_once(store: Store, sql: Callable[[str], list[tuple[object, ...]]]) -> None:
    for sequence_length in (1024, 2048, 4096):
        store.save_plan(make_plan(workload=Workload(global_batch_size=1, sequence_length=sequence_length)), 0.1)
    counts = {row[0]: row[1] for row in sql("SELECT kind, count(*) FROM documents GROUP BY kind")}
    assert counts == {"model": 1, "cluster": 1, "workload": 3, "constraints": 1, "objective": 1, "plan": 3}
    assert sql("SELECT count(*) FROM problems") == [(3,)]


def test_another_body_under_one_id_is_a_conflict_and_stores_nothing(
    store: Store, sql: Callable[[str], list[tuple[object, ...]]]
) -> None:
    plan = make_plan()
    model_sha = plan.problem.model.content_hash()
    store.save_plan(plan, 0.5)
    sql(f"UPDATE documents SET body = '{{}}' WHERE sha = '{model_sha}'")
    other = make_plan(workload=Workload(global_batch_size=1, sequence_length=1))
    before = sql("SELECT sha FROM documents ORDER BY sha")
    with pytest.raises(Conflict) as caught:
        store.save_plan(other, 0.5)
    assert caught.value.where == model_sha
    assert sql("SELECT sha FROM documents ORDER BY sha") == before


def test_a_plan_that_does_not_fit_is_refused(store: Store) -> None:
    with pytest.raises(DocumentInvalid):
        store.save_plan(make_plan().model_copy(update={"status": "infeasible"}), 0.5)
    assert store.list_plans() == ()


@pytest.mark.parametrize("wall_s", [-1.0, float("nan"), float("inf")])
def test_an_impossible_search_time_is_refused(store: Store, wall_s: float) -> None:
    with pytest.raises(DocumentInvalid):
        store.save_plan(make_plan(), wall_s)


def test_find_plan_answers_exactly_the_same_question(store: Store) -> None:
    plan = make_plan()
    problem = plan.problem
    assert store.find_plan(problem.problem_id) is None
    store.save_plan(plan, 0.5)
    assert store.find_plan(problem.problem_id) == plan
    measured = ProfileReference(profile_id="0" * 64, device="h100-sxm5-80gb", num_points=1)
    changed = [
        problem.model_copy(update={"model": make_model(9)}),
        problem.model_copy(update={"cluster": make_cluster(2)}),
        problem.model_copy(update={"workload": Workload(global_batch_size=2, sequence_length=4096)}),
        problem.model_copy(update={"profile": measured}),
    ]
    assert [store.find_plan(other.problem_id) for other in changed] == [None] * len(changed)


def test_a_plan_without_runners_up_answers_only_who_wants_none(store: Store) -> None:
    plan = make_plan()
    assert plan.is_final
    assert plan.alternatives == ()
    store.save_plan(plan, 0.5)
    text = store.find_answer(plan.problem.problem_id)
    assert text is not None
    assert (text.answers(0), text.answers(3)) == (True, False)


def test_find_plan_never_returns_what_other_software_found(store: Store) -> None:
    plan = make_plan()
    store.save_plan(plan, 0.5, signature="0.0.9+0123456789abcdef")
    assert store.find_plan(plan.problem.problem_id) is None
    assert store.find_plan(plan.problem.problem_id, "0.0.9+0123456789abcdef") == plan
    store.save_plan(plan, 0.7)
    assert store.find_plan(plan.problem.problem_id, software_signature()) == plan


def test_find_plan_ignores_estimates(store: Store) -> None:
    plan = make_plan()
    store.save_plan(plan)
    assert store.get_plan(plan.plan_id) == plan
    assert store.find_plan(plan.problem.problem_id) is None


def test_find_plan_prefers_the_proved_plan_then_the_smaller_gap(store: Store) -> None:
    proved = make_plan()
    wide = proved.model_copy(update={"status": "feasible", "gap": 0.2})
    narrow = proved.model_copy(update={"status": "feasible", "gap": 0.1})
    for plan, best in ((wide, wide), (narrow, narrow), (proved, proved), (wide, proved)):
        store.save_plan(plan, 0.1)
        assert store.find_plan(proved.problem.problem_id) == best


def test_find_search_gives_the_best_plan_and_the_longest_search(store: Store) -> None:
    proved = make_plan()
    wide = proved.model_copy(update={"status": "feasible", "gap": 0.2})
    key = proved.problem.problem_id
    assert store.find_search(key) is None
    store.save_plan(wide, 7.5)
    store.save_plan(proved, 0.5)
    store.save_plan(proved, 99.0, signature="0.0.9+0123456789abcdef")
    found = store.find_search(key)
    assert found is not None
    assert (found[0].plan_id, found[0].outcome, found[1]) == (proved.plan_id, "optimal", 7.5)


def test_prefixes_and_labels_resolve(store: Store) -> None:
    plan = make_plan()
    plan_id = store.save_plan(plan, 0.1)
    store.label_plan("nightly", plan_id[:8])
    for reference in (plan_id, plan_id[:4], plan_id[:40].upper(), "nightly", f"  {plan_id[:12]} "):
        assert store.resolve(reference) == plan_id
    assert store.get_plan("nightly") == plan


@pytest.mark.parametrize(
    "reference", ["", "abc", "unknown", "%", "____", "0" * 64, "0" * 65, "'; DROP TABLE plans; --"]
)
def test_unknown_references_are_not_found(store: Store, reference: str) -> None:
    store.save_plan(make_plan(), 0.1)
    with pytest.raises(NotFound) as caught:
        store.get_plan(reference)
    assert "plans list" in (caught.value.hint or "")


def test_an_ambiguous_prefix_names_the_candidates(store: Store, sql: Callable[[str], list[tuple[object, ...]]]) -> None:
    plan_id = store.save_plan(make_plan(), 0.1)
    twin = plan_id[:10] + ("0" if plan_id[10] != "0" else "1") + plan_id[11:]
    sql(f"INSERT INTO documents SELECT '{twin}', kind, schema_version, body FROM documents WHERE sha = '{plan_id}'")
    sql(
        "INSERT INTO plans (plan_id, problem_id, status, step_time_s, gap, num_devices, model_name, cluster_name,"
        f" created_at) SELECT '{twin}', problem_id, status, step_time_s, gap, num_devices, model_name, cluster_name,"
        f" created_at FROM plans WHERE plan_id = '{plan_id}'"
    )
    with pytest.raises(AmbiguousPlan) as caught:
        store.get_plan(plan_id[:10])
    assert plan_id[:16] in caught.value.what
    assert twin[:16] in caught.value.what
    assert store.resolve(plan_id[:11]) == plan_id


def test_pages_are_newest_first_and_stable_under_inserts(store: Store) -> None:
    saved = [store.save_plan(plan_with_layers(layers), 0.1) for layers in range(1, 8)]
    first = store.list_plans(limit=3)
    assert [record.plan_id for record in first] == saved[:3:-1]
    newer = store.save_plan(plan_with_layers(8), 0.1)
    second = store.list_plans(limit=3, after=first[-1].plan_id)
    third = store.list_plans(limit=3, after=second[-1].plan_id)
    assert [record.plan_id for record in (*first, *second, *third)] == saved[::-1]
    assert store.list_plans(limit=1)[0].plan_id == newer


def test_pages_split_plans_of_one_moment(database_url: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    ensure_schema(engine)
    with Store(engine, clock=lambda: START) as store:
        saved = {store.save_plan(plan_with_layers(layers), 0.1) for layers in range(1, 6)}
        seen: list[str] = []
        while page := store.list_plans(limit=2, after=seen[-1] if seen else None):
            seen += [record.plan_id for record in page]
    assert len(seen) == len(set(seen))
    assert set(seen) == saved


def test_lists_filter_by_model_and_cluster(store: Store) -> None:
    small = store.save_plan(make_plan(cluster=make_cluster(1)), 0.1)
    large = store.save_plan(make_plan(Strategy(tp=8), cluster=make_cluster(8)), 0.1)
    assert [record.plan_id for record in store.list_plans(cluster="test-8")] == [large]
    assert [record.plan_id for record in store.list_plans(model="small-llama", cluster="test-1")] == [small]
    assert store.list_plans(model="other") == ()
    record = store.list_plans(cluster="test-8")[0]
    assert (record.num_devices, record.status, record.model_name) == (8, "optimal", "small-llama")
    assert record.step_time_s == store.get_plan(large).step_time_s


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_impossible_page_sizes_are_refused(store: Store, limit: int) -> None:
    with pytest.raises(DocumentInvalid):
        store.list_plans(limit=limit)


def test_labels_move_and_keep_their_history(store: Store) -> None:
    one, two = (store.save_plan(plan_with_layers(layers), 0.1) for layers in (1, 2))
    assert store.label_plan("prod", one) == 1
    assert store.label_plan("prod", one) == 1
    assert store.label_plan("prod", two) == 2
    assert store.resolve("prod") == two
    assert [(label.version, label.plan_id) for label in store.label_history("prod")] == [(2, two), (1, one)]
    assert {record.plan_id: record.labels for record in store.list_plans()} == {one: (), two: ("prod",)}
    assert store.label_history("never") == ()


@pytest.mark.parametrize("name", ["", "a b", "-x", "deadbeef", "0123", "x" * 65, "a/b", "x\n"])
def test_unusable_labels_are_refused(store: Store, name: str) -> None:
    plan_id = store.save_plan(make_plan(), 0.1)
    with pytest.raises(DocumentInvalid):
        store.label_plan(name, plan_id)


def test_a_label_needs_a_stored_plan(store: Store) -> None:
    with pytest.raises(NotFound):
        store.label_plan("prod", "0" * 64)


def test_emissions_are_recorded_once_and_listed(store: Store) -> None:
    plan_id = store.save_plan(make_plan(), 0.1)
    manifest = {"files": {"args.yaml": "0" * 64}, "assumptions": ["größer"]}
    first = store.save_emission(plan_id, "megatron", "torchrun", manifest)
    assert store.save_emission(plan_id[:9], "megatron", "torchrun", manifest) == first
    second = store.save_emission(plan_id, "megatron", "slurm", manifest)
    assert second != first
    listed = store.list_emissions(plan_id)
    assert [(emission.emission_id, emission.launcher) for emission in listed] == [
        (second, "slurm"),
        (first, "torchrun"),
    ]
    assert listed[0].manifest == manifest
    with pytest.raises(NotFound):
        store.save_emission("0" * 64, "megatron", "slurm", manifest)


def test_a_damaged_plan_is_reported(store: Store, sql: Callable[[str], list[tuple[object, ...]]]) -> None:
    plan_id = store.save_plan(make_plan(), 0.1)
    sql(f"UPDATE documents SET body = replace(body, 'optimal', 'feasible') WHERE sha = '{plan_id}'")
    with pytest.raises(StoreCorrupt) as caught:
        store.get_plan(plan_id)
    assert caught.value.where == plan_id


def test_a_plan_of_another_form_is_reported(store: Store, sql: Callable[[str], list[tuple[object, ...]]]) -> None:
    plan = make_plan()
    store.save_plan(plan, 0.1)
    body = plan.canonical_json().replace('"gap"', '"gap_of_tomorrow"')
    sha = hashlib.sha256(body.encode()).hexdigest()
    sql(
        f"INSERT INTO documents SELECT '{sha}', kind, 2, replace(body, '\"gap\"', '\"gap_of_tomorrow\"')"
        f" FROM documents WHERE sha = '{plan.plan_id}'"
    )
    sql(
        "INSERT INTO plans (plan_id, problem_id, status, step_time_s, gap, num_devices, model_name, cluster_name,"
        f" created_at) SELECT '{sha}', problem_id, status, step_time_s, gap, num_devices, model_name, cluster_name,"
        " created_at FROM plans"
    )
    with pytest.raises(PlanUnreadable) as caught:
        store.get_plan(sha)
    assert "gap" in (caught.value.where or "")


def test_open_store_reopens_what_it_stored(database_url: str) -> None:
    plan = make_plan()
    with open_store(database_url) as first:
        first.save_plan(plan, 0.1)
    with open_store(database_url) as second:
        assert second.find_plan(plan.problem.problem_id) == plan


def test_open_store_uses_the_environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHWRIGHT_DATABASE", database_url)
    with open_store() as store:
        plan_id = store.save_plan(make_plan(), 0.1)
    with open_store(database_url) as store:
        assert store.resolve(plan_id) == plan_id
