"""``/v1/models``, ``/v1/clusters``, ``/v1/profiles``, ``/v1/devices``, ``/v1/backends``: what questions may name.

Built-in names never change.  Stored ones are versioned: a change says which version it replaces (If-Match), so that two
people cannot overwrite each other unseen.
"""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Admin, Reader
from api.http.openapi import problems, reads
from api.http.request_body import read_document, read_json
from api.planning.resolving import catalogue_cluster, catalogue_model
from api.routes.named_documents import (
    REMOVED,
    SHOWN,
    STORED,
    Shelf,
    StoredName,
    expected_version,
    put_document,
    remove_document,
    shown_document,
)
from api.routes.operations import add_operation
from api.service import service_of
from api.wire.questions import ProfileName
from planner.model.builtin import builtin_models
from planner.operations.clusters import GET_CLUSTER
from planner.operations.models import GET_MODEL
from planner.operations.named import Listing, NamedView, RemovedName
from profiles.catalogue import builtin_clusters, load_device
from profiles.document import Document

router = APIRouter(tags=["catalogue"])
MODELS = Shelf("model", "/v1/models", builtin_models, catalogue_model)
CLUSTERS = Shelf("cluster", "/v1/clusters", builtin_clusters, catalogue_cluster)
PROFILES = Shelf("profile", "/v1/profiles", lambda: (), load_device)


@router.get("/v1/profiles", summary="Named profiles", responses=problems())
async def list_profiles(request: Request, caller: Reader) -> Listing:
    """Names of measurements that questions can lean on."""
    records = await to_thread.run_sync(service_of(request).records.list_named, "profile")
    rows = ({"name": each.name, "version": each.version, "created_at": each.created_at.isoformat()} for each in records)
    return Listing(items=tuple(rows))


async def get_model(request: Request, name: StoredName, caller: Reader) -> Response:
    """A model."""
    return await shown_document(request, MODELS, name)


async def get_cluster(request: Request, name: StoredName, caller: Reader) -> Response:
    """A cluster."""
    return await shown_document(request, CLUSTERS, name)


add_operation(router, GET_MODEL, get_model, responses=SHOWN)
add_operation(router, GET_CLUSTER, get_cluster, responses=SHOWN)


@router.get("/v1/profiles/{name}", summary="Which profile a name means", response_model=NamedView, responses=SHOWN)
async def get_profile(request: Request, name: StoredName, caller: Reader) -> Response:
    """Its identity and its device; the measurements stay on the server."""
    return await shown_document(request, PROFILES, name)


@router.put(
    "/v1/models/{name}",
    summary="Store a model under a name",
    response_model=NamedView,
    responses=STORED,
    openapi_extra=reads(None, {"model_type": "llama", "hidden_size": 4096}),
)
async def put_model(request: Request, name: StoredName, caller: Admin) -> Response:
    """A Hugging Face config, a model description or a whole ModelSpec.  Needs If-Match, or If-None-Match: *."""
    service = service_of(request)
    expected = expected_version(request, MODELS, name)
    data = await read_json(request, service.settings.body_limit_bytes)
    model = await to_thread.run_sync(service.resolver.model, _mapping(data, name))
    return await put_document(request, caller, MODELS, name, model, expected)


@router.put(
    "/v1/clusters/{name}",
    summary="Store a cluster under a name",
    response_model=NamedView,
    responses=STORED,
    openapi_extra=reads(None, {"name": "mine", "pools": []}),
)
async def put_cluster(request: Request, name: StoredName, caller: Admin) -> Response:
    """A cluster document; numbers may carry units.  Demands If-Match, or If-None-Match: * for a new name."""
    service = service_of(request)
    expected = expected_version(request, CLUSTERS, name)
    data = await read_json(request, service.settings.body_limit_bytes)
    cluster = await to_thread.run_sync(service.resolver.cluster, _mapping(data, name), None)
    return await put_document(request, caller, CLUSTERS, name, cluster, expected)


@router.put(
    "/v1/profiles/{name}",
    summary="Name a profile that this server holds",
    response_model=NamedView,
    responses=STORED,
    openapi_extra=reads(ProfileName, {"profile_id": "0123456789abcdef"}),
)
async def put_profile(request: Request, name: StoredName, caller: Admin) -> Response:
    """The profile by its id; `meshwright profile import` makes them.  Demands If-Match, or If-None-Match: * if new."""
    service = service_of(request)
    expected = expected_version(request, PROFILES, name)
    question = await read_document(request, ProfileName, service.settings.profile_limit_bytes)

    def reference() -> Document:
        from profiles.prediction.profile_folder import find_profile, reference_of

        return reference_of(find_profile(question.profile_id))

    return await put_document(request, caller, PROFILES, name, await to_thread.run_sync(reference), expected)


def _removes(shelf: Shelf) -> None:
    """The route that removes a name of a shelf."""

    async def remove(request: Request, name: StoredName, caller: Admin) -> Response:
        return await remove_document(request, caller, shelf, name)

    router.add_api_route(
        f"{shelf.path}/{{name}}",
        remove,
        methods=["DELETE"],
        name=f"delete_{shelf.kind}",
        summary=f"Remove a {shelf.kind} that is stored under a name, with its versions",
        description="Plans that were made of it stay.  Demands If-Match.",
        response_model=RemovedName,
        responses=REMOVED,
    )


for _shelf in (MODELS, CLUSTERS, PROFILES):
    _removes(_shelf)


def _mapping(data: Any, name: str) -> dict[str, Any]:
    from profiles.validation import Finding, FindingsInvalid

    if not isinstance(data, dict):
        raise FindingsInvalid([Finding("", "must be an object", "send the document")], "body")
    # The name under which it is stored is the name that it has, unless the document says another.
    return {"name": name, **data} if "model_type" not in data and "architectures" not in data else data
