"""The server of the Model Context Protocol: operations as tools, plans as resources.

An agent gets the errors of the service as the result of a tool, with what is wrong, where, and what repairs it, so that
it can mend its question and ask again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from api.agents.tools import ToolCall, tools
from planner.version import __version__

if TYPE_CHECKING:
    import httpx
    from mcp.server.context import ServerRequestContext

    from api.agents.door import Door
    from api.agents.tools import Tool

PLAN_URI = "meshwright://plans/"
LISTED_PLANS = 50
LEFT_OUT = ("problem",)
"""Parts of a plan that its resource has: the whole question, which the agent said itself."""
INSTRUCTIONS = (
    "Meshwright plans how a large model is trained on a cluster: parallelism, micro-batches, recompute, offload. Ask"
    " create_plan for the best plan of a question, get_explanation for why, with why_not for a strategy of your own;"
    " create_estimate for one strategy; create_emission for its launch files. Times are seconds, sizes bytes. A refused"
    " question says where it is wrong and what repairs it."
)


async def planning_server(door: Door) -> Server[Any]:
    """The server in front of a service."""
    served = _Served(door, tools(await door.document()))
    return Server(
        "meshwright",
        version=__version__,
        title="Meshwright",
        instructions=INSTRUCTIONS,
        on_list_tools=served.list_tools,
        on_call_tool=served.call_tool,
        on_list_resources=served.list_resources,
        on_list_resource_templates=served.list_templates,
        on_read_resource=served.read_resource,
    )


class _Served:
    """What the server answers to each request of the protocol."""

    def __init__(self, door: Door, known: Mapping[str, Tool]) -> None:
        self.door = door
        self.known = known

    async def list_tools(self, ctx: ServerRequestContext[Any], asked: types.PaginatedRequestParams | None) -> Any:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each.name,
                    description=each.description,
                    input_schema=dict(each.schema),
                    annotations=types.ToolAnnotations(
                        read_only_hint=each.only_reads, destructive_hint=each.removes, idempotent_hint=True
                    ),
                )
                for each in self.known.values()
            ]
        )

    async def call_tool(self, ctx: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> Any:
        if asked.name not in self.known:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {asked.name!r}; one of {', '.join(self.known)}")
        tool, arguments = self.known[asked.name], asked.arguments or {}
        if (wrong := tool.unknown(arguments)) is not None:
            return types.CallToolResult(content=[types.TextContent(text=wrong)], is_error=True)
        answer = await self.door.send(tool.call(arguments), _credentials(ctx), ctx.session.report_progress)
        if not answer.is_success:
            return types.CallToolResult(content=[types.TextContent(text=_refusal(answer))], is_error=True)
        found = _short(answer.json())
        return types.CallToolResult(
            content=[types.TextContent(text=json.dumps(found, ensure_ascii=False))], structured_content=found
        )

    async def list_resources(self, ctx: ServerRequestContext[Any], asked: types.PaginatedRequestParams | None) -> Any:
        query = {"limit": LISTED_PLANS} | ({"after": asked.cursor} if asked and asked.cursor else {})
        answer = await _read(self.door, ToolCall("GET", "/v1/plans", query, None), ctx)
        rows = answer.json()["plans"]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{PLAN_URI}{row['plan_id']}",
                    name=row["plan_id"][:12],
                    title=f"{row['model']} on {row['num_devices']} devices of {row['cluster']}",
                    mime_type="application/json",
                )
                for row in rows
            ],
            next_cursor=rows[-1]["plan_id"] if len(rows) == LISTED_PLANS else None,
        )

    async def list_templates(self, ctx: ServerRequestContext[Any], asked: types.PaginatedRequestParams | None) -> Any:
        template = types.ResourceTemplate(
            uri_template=PLAN_URI + "{plan}",
            name="plan",
            description="a stored plan with its question; by id, unique prefix or label",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, ctx: ServerRequestContext[Any], asked: types.ReadResourceRequestParams) -> Any:
        uri = str(asked.uri)
        if not uri.startswith(PLAN_URI):
            raise MCPError(types.INVALID_PARAMS, f"{uri} is no plan; write {PLAN_URI}<id>")
        call = self.known["get_plan"].call({"plan": uri.removeprefix(PLAN_URI)})
        answer = await _read(self.door, call, ctx)
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=answer.text)
        return types.ReadResourceResult(contents=[contents])


async def _read(door: Door, call: ToolCall, ctx: ServerRequestContext[Any]) -> httpx.Response:
    """What is read; a refusal is an error of the protocol."""
    answer = await door.send(call, _credentials(ctx), ctx.session.report_progress)
    if not answer.is_success:
        raise MCPError(types.INVALID_PARAMS, _refusal(answer))
    return answer


def _credentials(ctx: ServerRequestContext[Any]) -> dict[str, str]:
    """The key that came with a request over HTTP; the service asks for it, not we."""
    headers = getattr(ctx.request, "headers", None) or {}
    key = headers.get("authorization")
    return {} if key is None else {"Authorization": key}


def _short(found: Any) -> Any:
    """An answer without what its resource has."""
    if isinstance(found, Mapping) and "plan_id" in found:
        return {name: value for name, value in found.items() if name not in LEFT_OUT}
    return found


def _refusal(answer: httpx.Response) -> str:
    """What is wrong, where, and what repairs it, a line each."""
    try:
        problem = answer.json()
    except ValueError:
        return f"the service answered {answer.status_code}"
    lines = [f"{problem.get('title', 'Refused')}: {problem.get('detail', '')}"]
    for each in problem.get("errors") or ():
        hint = f" ({each['hint']})" if each.get("hint") else ""
        lines.append(f"- {each.get('pointer') or 'the question'}: {each['detail']}{hint}")
    return "\n".join(lines)
