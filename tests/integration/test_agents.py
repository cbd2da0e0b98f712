"""Agents plan through the Model Context Protocol, with the SDK's own client: in process, over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from api.access.api_keys import new_key
from api.agents.door import door_of
from api.agents.server import PLAN_URI, planning_server
from api.app import create_app
from api.settings import Settings
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.listening_service import listening
from tests.running_service import question

REPOSITORY = Path(__file__).parents[2]


def settings(folder: Path, **changes: Any) -> Settings:
    given = {"solver_processes": 1, "quick_processes": 1, "synchronous_s": 120.0} | changes
    return Settings(database=f"sqlite:///{folder / 'plans.db'}", **given)


def words(answer: Any) -> str:
    """What a tool said, as text."""
    (content,) = answer.content
    return str(content.text)


async def plans_and_asks(client: Client) -> str:
    """What an agent does: a plan, why not mine, the launch files.  The plan's id."""
    planned: Any = await client.call_tool("create_plan", question())
    assert not planned.is_error, planned.content
    plan = planned.structured_content
    assert json.loads(words(planned)) == plan
    assert plan["step_time_s"] > 0
    assert "problem" not in plan
    other: Any = await client.call_tool("get_explanation", {"plan": plan["plan_id"], "why_not": "tp=8"})
    assert not other.is_error, other.content
    files: Any = await client.call_tool("create_emission", {"plan": plan["plan_id"]})
    assert not files.is_error, files.content
    assert files.structured_content["plan_id"] == plan["plan_id"]
    whole: Any = await client.read_resource(PLAN_URI + plan["plan_id"])
    assert json.loads(whole.contents[0].text)["problem"]["workload"]["sequence_length"] == 2048
    listed = (await client.list_resources()).resources
    assert [each.uri for each in listed] == [PLAN_URI + plan["plan_id"]]
    return str(plan["plan_id"])


def test_an_agent_plans_compares_and_emits(tmp_path: Path) -> None:
    async def run() -> None:
        async with door_of(create_app(settings(tmp_path))) as door, Client(await planning_server(door)) as client:
            await plans_and_asks(client)
            names: dict[str, Any] = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"create_plan", "create_estimate", "get_explanation", "create_emission", "list_models"} <= set(names)
            assert not {"get_report", "create_sweep"} & set(names)
            assert names["get_memory"].annotations.read_only_hint
            assert not names["create_plan"].annotations.read_only_hint
            for asked, said in (
                ({"cluster": "dgx-h1000"}, "did you mean 'dgx-h100'?"),
                ({"workload": {"global_batch_size": 0, "sequence_length": 1}}, "/workload/global_batch_size"),
                ({"device": 8}, "has no argument device"),
            ):
                refused: Any = await client.call_tool("create_plan", question(**asked))
                assert refused.is_error
                assert said in words(refused)

    asyncio.run(run())


def test_every_schema_is_complete_in_itself(tmp_path: Path) -> None:
    async def run() -> list[dict[str, Any]]:
        async with door_of(create_app(settings(tmp_path))) as door, Client(await planning_server(door)) as client:
            return [tool.input_schema for tool in (await client.list_tools()).tools]

    from jsonschema import Draft202012Validator

    for schema in asyncio.run(run()):
        Draft202012Validator.check_schema(schema)
        defined = schema.get("$defs", {})
        text = json.dumps(schema)
        assert "#/components" not in text
        for name in defined:
            assert f"#/$defs/{name}" in text
        Draft202012Validator(schema).is_valid({})


def test_a_long_search_is_a_job_that_is_waited_for(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def run() -> None:
        found = settings(tmp_path, synchronous_s=0.001)
        board = MemoryBoard(str(found.database))
        async with door_of(create_app(found, board)) as door, Client(await planning_server(door)) as client:
            planned: Any = await client.call_tool("create_plan", question(), progress_callback=hear)
            assert not planned.is_error, planned.content
            assert planned.structured_content["step_time_s"] > 0

    asyncio.run(run())
    assert heard
    assert "job" in heard[0]


@pytest.mark.slow
def test_over_standard_input_and_output(tmp_path: Path) -> None:
    words = ["-m", "planner.cli.main", "mcp", "--database", f"sqlite:///{tmp_path / 'plans.db'}", "--processes", "1"]
    settings = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}

    async def run() -> None:
        server = stdio_client(StdioServerParameters(command=sys.executable, args=words, env=settings))
        async with Client(server) as client:
            await plans_and_asks(client)

    asyncio.run(run())


def test_over_http_the_key_is_asked_for(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    key, record = new_key("agent", "plan", None)
    with open_store(database) as store:
        store.service().add_api_key(record)

    async def run(address: str) -> None:
        for given, answers in ((key, True), ("", False)):
            headers = {"Authorization": f"Bearer {given}"} if given else {}
            async with (
                httpx.AsyncClient(headers=headers, timeout=120.0) as http,
                Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
            ):
                if answers:
                    await plans_and_asks(client)
                else:
                    refused: Any = await client.call_tool("list_models", {})
                    assert refused.is_error
                    assert "key" in words(refused)

    with listening(database, MemoryBoard(database), agents=True, authentication=True, synchronous_s=120.0) as address:
        asyncio.run(run(address))
