"""``/v1/strategies:read``: what a typed or pasted configuration means, in the planner's own words."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request

from api.access.auth import Reader
from api.http.openapi import problems, reads
from api.http.request_body import read_document
from api.service import service_of
from api.wire.questions import StrategyText
from api.wire.views import ReadStrategy
from planner.model.megatron_args import megatron_job
from planner.operations.launch_files import plain_strategy
from planner.operations.script import pins_text
from planner.strategy.fields import KEYS
from planner.strategy.text import parse_assignments

router = APIRouter(prefix="/v1", tags=["questions"])
FLAG = "--"
"""What a launch script has and ``tp=8,pp=4`` has not."""


@router.post(
    "/strategies:read",
    summary="Read `tp=8,pp=4`, or a Megatron-LM launch script",
    response_model=ReadStrategy,
    responses=problems(body=True),
    openapi_extra=reads(StrategyText, {"text": "tp=8,pp=4,mbs=1"}),
)
async def read_strategy(request: Request, caller: Reader) -> ReadStrategy:
    """Strategy fields by their full names, and what else a script says.  Nothing of it is run."""
    limit = service_of(request).settings.body_limit_bytes
    question = await read_document(request, StrategyText, limit)
    return await to_thread.run_sync(_read, question.text)


def _read(text: str) -> ReadStrategy:
    if FLAG not in text:
        words = [line.strip().strip(",") for line in text.splitlines() if line.strip()]
        strategy = parse_assignments(words, "/text", KEYS)
        return ReadStrategy(kind="assignments", strategy=strategy, pins=pins_text(strategy))
    job = megatron_job(text, "script", "/text")
    given = plain_strategy(job)
    return ReadStrategy(
        kind="megatron_script",
        strategy=given,
        pins=pins_text(given),
        workload=job.workload,
        num_devices=job.num_devices,
        model=job.model,
        skipped=job.skipped,
    )
