"""A database that the migrations built and one that ``create_all`` built are the same database."""

from __future__ import annotations

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text

from planner.store import open_store, upgrade_store
from planner.store.address import database_url as sqlalchemy_url
from planner.store.engine import make_engine, writing
from planner.store.errors import StoreOutdated, StoreTooNew
from planner.store.schema import (
    HEAD_REVISION,
    MIGRATIONS,
    create_schema,
    current_revision,
    downgrade,
    ensure_schema,
    known_revisions,
    upgrade,
)
from planner.store.tables import Base
from tests.plan_factory import make_plan


def anatomy(engine: Engine) -> dict[str, Any]:
    """Everything that the database itself says about its tables."""
    with engine.connect() as connection:
        looker = inspect(connection)
        return {
            table: {
                "columns": [
                    (column["name"], str(column["type"]), column["nullable"], column["default"])
                    for column in looker.get_columns(table)
                ],
                "primary key": looker.get_pk_constraint(table),
                "foreign keys": sorted(looker.get_foreign_keys(table), key=lambda key: str(key["name"])),
                "indexes": sorted(looker.get_indexes(table), key=lambda index: str(index["name"])),
                "unique": sorted(looker.get_unique_constraints(table), key=lambda key: str(key["name"])),
                "checks": looker.get_check_constraints(table),
            }
            for table in sorted(looker.get_table_names())
        }


def test_head_constant_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD_REVISION
    assert known_revisions()[0] == HEAD_REVISION


def test_migrations_build_the_schema_of_the_tables(
    database_url: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    migrated = make_engine(sqlalchemy_url(database_url))
    upgrade(migrated)
    with migrated.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []

    if migrated.dialect.name == "postgresql":
        second = request.getfixturevalue("postgres_server").create_database("created_directly")
    else:
        second = f"sqlite:///{tmp_path_factory.mktemp('created')}/plans.db"
    created = make_engine(sqlalchemy_url(second))
    create_schema(created)
    built = anatomy(created)
    assert anatomy(migrated) == built
    assert set(built) == {*Base.metadata.tables, "alembic_version"}
    migrated.dispose()
    created.dispose()


def test_every_revision_goes_up_and_down(database_url: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    empty = anatomy(engine)
    steps: list[dict[str, Any]] = []
    for revision in reversed(known_revisions()):
        upgrade(engine, revision)
        steps.append(anatomy(engine))
    upgrade(engine)
    assert anatomy(engine) == steps[-1]
    for before in reversed([empty, *steps[:-1]]):
        downgrade(engine, "-1")
        after = anatomy(engine)
        after.pop("alembic_version", None)
        before.pop("alembic_version", None)
        assert after == before
    engine.dispose()


def test_a_database_migrated_down_to_nothing_is_created_again(database_url: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    upgrade(engine)
    downgrade(engine, "base")
    engine.dispose()
    with open_store(database_url) as store:
        store.save_plan(make_plan(), 0.1)


def test_a_database_built_by_migrations_serves_the_store(database_url: str) -> None:
    assert upgrade_store(database_url) == HEAD_REVISION
    with open_store(database_url) as store:
        plan_id = store.save_plan(make_plan(), 0.1)
        assert store.get_plan(plan_id) == make_plan()


def test_upgrade_is_one_transaction(database_url: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        # In the way of the last table that the migration creates.
        connection.execute(text("CREATE TABLE emissions (id INTEGER)"))
    with pytest.raises(Exception, match="emissions"):
        upgrade(engine)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["emissions"]
    engine.dispose()


def test_foreign_tables_are_left_alone(database_url: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE plans (id INTEGER)"))
    with pytest.raises(Exception, match="tables of other origin: plans"):
        ensure_schema(engine)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["plans"]
    engine.dispose()


def test_a_newer_schema_is_refused(database_url: str) -> None:
    with open_store(database_url):
        pass
    engine = make_engine(sqlalchemy_url(database_url))
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreTooNew) as caught:
        open_store(database_url)
    assert "9999" in caught.value.what
    assert caught.value.exit_code == 4


def test_an_older_schema_is_upgraded_on_sqlite_and_refused_on_postgresql(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(database_url) as store:
        plan_id = store.save_plan(make_plan(), 0.1)
    engine = make_engine(sqlalchemy_url(database_url))
    # The software pretends to be one release further; the migration to it is stood in for by moving the stamp.
    monkeypatch.setattr("planner.store.schema.HEAD_REVISION", "9998")

    def stamp(target: Engine, revision: str = "head") -> None:
        with writing(target) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9998'"))

    monkeypatch.setattr("planner.store.schema.upgrade", stamp)
    if engine.dialect.name == "sqlite":
        ensure_schema(engine)
        with engine.connect() as connection:
            assert current_revision(connection) == "9998"
    else:
        with pytest.raises(StoreOutdated, match=HEAD_REVISION) as caught:
            ensure_schema(engine)
        assert "db upgrade" in (caught.value.hint or "")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT plan_id FROM plans")).scalar() == plan_id
    engine.dispose()


def test_alembic_runs_from_any_folder_without_an_ini_file(
    database_url: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import command

    from planner.store.schema import alembic_config

    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("MESHWRIGHT_DATABASE", database_url)
    command.upgrade(alembic_config(), "head")
    engine = create_engine(sqlalchemy_url(database_url))
    assert "plans" in anatomy(engine)
    engine.dispose()
