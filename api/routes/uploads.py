"""``/v1/clusters:complete`` and ``/v1/profiles:import``: the content of uploaded files."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Admin, Planner
from api.errors import SolverCrashed
from api.http.openapi import problems, reads
from api.http.request_body import read_document
from api.service import Service, service_of
from api.solving.task_runner import TooLong
from api.uploads.received import received_files
from api.wire.problem_details import in_fields
from api.wire.uploads import ClusterCompletion, CompletionQuestion, ImportAnswer, ImportQuestion, UploadQuestion
from profiles.errors import DocumentInvalid, NotFound
from profiles.validation import Finding, FindingsInvalid

router = APIRouter(prefix="/v1", tags=["catalogue"])
TOPOLOGY = "SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=leaf1 Nodes=n[4-7]\nSwitchName=spine Switches=leaf[0-1]\n"
LOG = """#  size     count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw  #wrong
#   (B) (elements)                             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
 1048576    262144     float     sum      -1    28.56   36.71   64.24      0    28.37   36.96   64.68      0
"""
"""A row of nccl-tests on eight H100 of one node (tests/samples/nccl-tests)."""


def _example(name: str, text: str) -> dict[str, str]:
    return {"name": name, "content_base64": base64.b64encode(text.encode()).decode()}


IMPORT_EXAMPLE = {
    "files": [_example("all_reduce.txt", LOG)],
    "facts": {"device": "h100-sxm5-80gb"},
    "dry_run": True,
}


@router.post(
    "/clusters:complete",
    summary="A cluster from topology files; nothing is stored",
    response_model=ClusterCompletion,
    responses=problems(409, body=True),
    openapi_extra=reads(CompletionQuestion, {"files": [_example("topology.conf", TOPOLOGY)], "base": "dgx-h100"}),
)
async def complete_cluster(request: Request, caller: Planner) -> Response:
    """What nvidia-smi topo -m, Slurm, ibnetdiscover, ... say, completed from `base`: a document that questions take."""
    service = service_of(request)
    question = await read_document(request, CompletionQuestion, service.settings.profile_limit_bytes)
    content = await _read(service, "cluster_completion", question, {"name": question.name})
    return Response(content, media_type="application/json")


@router.post(
    "/profiles:import",
    summary="Store what benchmark logs and traces measured",
    response_model=ImportAnswer,
    responses=problems(body=True),
    openapi_extra=reads(ImportQuestion, IMPORT_EXAMPLE),
)
async def import_measurements(request: Request, caller: Admin) -> Response:
    """As `meshwright profile import`: recognised, cleaned, judged, kept once.  A dry run answers 200 with refusals."""
    from api.uploads.storing import with_profiles
    from profiles.observation_store.address import profiles_folder

    service = service_of(request)
    question = await read_document(request, ImportQuestion, service.settings.profile_limit_bytes)
    if not question.dry_run:
        await service.audit.begin(request, caller)
    store = profiles_folder()
    wanted = {"store": str(store), "keep_going": question.keep_going, "dry_run": question.dry_run}
    content = await _read(service, "measurement_import", question, wanted)
    answer = ImportAnswer.model_validate_json(content)
    answer = await to_thread.run_sync(with_profiles, answer, store)
    return Response(answer.model_dump_json(), media_type="application/json")


def _named(service: Service, question: UploadQuestion) -> dict[str, Any]:
    """What the names of a question mean; each that means nothing is a finding (pointer, what, hint)."""
    from profiles.catalogue import load_device
    from profiles.importing.formats import load_format

    known: dict[str, Callable[[str], Any]] = {
        "format": lambda name: load_format(name).name,
        "device": lambda name: load_device(name).name,
        "base": lambda name: service.resolver.cluster(name, None).model_dump(mode="json"),
    }
    found: dict[str, Any] = {}
    findings: list[tuple[str, str, str]] = []
    for part, meaning in known.items():
        name = getattr(question, part, None)
        try:
            found[part] = None if name is None else meaning(name)
        except (DocumentInvalid, NotFound) as error:
            found[part] = None
            findings.append((f"/{part}", error.what, error.hint or ""))
    return {**found, "facts": dict(question.facts), "findings": findings}


async def _read(service: Service, task: str, question: UploadQuestion, more: dict[str, Any]) -> bytes:
    """The task's answer about the files, which lie in a folder of this request until it is there."""
    with ExitStack() as held:
        files = await to_thread.run_sync(held.enter_context, received_files(question.files))
        payload = {**await to_thread.run_sync(_named, service, question), **more, "files": files}
        try:
            # Not among the estimates: a large file would keep every slider waiting.
            return await service.searches.run(task, payload, service.settings.quick_s)
        except TooLong:
            what = f"reading them takes longer than {service.settings.quick_s:g} s"
            hint = "send fewer or smaller files; what is stored already is never stored twice"
        except SolverCrashed:
            what, hint = "reading them ended the process that reads", "send them one by one to find the damaged one"
    raise FindingsInvalid([Finding("/files", what, in_fields(hint))], "body")
