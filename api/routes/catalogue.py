"""``/v1/models``, ``/v1/clusters``, ``/v1/profiles``, ``/v1/devices``, ``/v1/backends``: what questions may name.

Built-in names never change.  Stored ones are versioned: a change says which version it replaces (If-Match), so that two
people cannot overwrite each other unseen.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Admin, Reader
from api.http.openapi import problems, reads
from api.http.request_body import read_document, read_json
from api.planning.resolving import catalogue_cluster, catalogue_model
from api.routes.named_documents import (
    SHOWN,
    STORED,
    Shelf,
    StoredName,
    expected_version,
    put_document,
    shown_document,
)
from api.service import service_of
from api.wire.questions import ProfileName
from api.wire.views import BackEndListing, BackEndView, Listing, NamedView
from planner.answers.summaries import cluster_summary, device_summary, model_summary
from planner.backends.registry import backends
from planner.backends.summary import backend_summary
from planner.model.builtin import builtin_models
from profiles.catalogue import builtin_clusters, builtin_devices, load_device
from profiles.document import Document

router = APIRouter(prefix="/v1", tags=["catalogue"])
MODELS = Shelf("model", "/v1/models", builtin_models, catalogue_model)
CLUSTERS = Shelf("cluster", "/v1/clusters", builtin_clusters, catalogue_cluster)
PROFILES = Shelf("profile", "/v1/profiles", lambda: (), load_device)


@router.get("/models", summary="Models by name, with their sizes", responses=problems())
async def list_models(request: Request, caller: Reader) -> Listing:
    """Built-in ones first."""
    service = service_of(request)

    def rows() -> tuple[dict[str, Any], ...]:
        stored = [record.name for record in service.records.list_named("model")]
        own = ({**model_summary(name, service.resolver.model(name)), "builtin": False} for name in stored)
        return (*_builtin_models(), *own)

    return Listing(items=await to_thread.run_sync(rows))


@router.get("/clusters", summary="Clusters by name, with their devices", responses=problems())
async def list_clusters(request: Request, caller: Reader) -> Listing:
    """Built-in ones first; `devices` of a question scales them."""
    service = service_of(request)

    def rows() -> tuple[dict[str, Any], ...]:
        stored = [record.name for record in service.records.list_named("cluster")]
        own = (
            {**cluster_summary(service.resolver.cluster(name, None)), "name": name, "builtin": False} for name in stored
        )
        return (*_builtin_clusters(), *own)

    return Listing(items=await to_thread.run_sync(rows))


@router.get("/profiles", summary="Named profiles", responses=problems())
async def list_profiles(request: Request, caller: Reader) -> Listing:
    """Names of measurements that questions can lean on."""
    records = await to_thread.run_sync(service_of(request).records.list_named, "profile")
    rows = ({"name": each.name, "version": each.version, "created_at": each.created_at.isoformat()} for each in records)
    return Listing(items=tuple(rows))


@router.get("/devices", summary="Known accelerators, with their peak rates", responses=problems())
async def list_devices(request: Request, caller: Reader) -> Listing:
    """As in the hardware catalogue."""
    names = builtin_devices()
    return Listing(items=await to_thread.run_sync(lambda: tuple(device_summary(load_device(name)) for name in names)))


@router.get("/backends", summary="Back-ends that a question may name, with their releases", responses=problems())
async def list_backends(request: Request, caller: Reader) -> BackEndListing:
    """From the registry, other parties' ones too; `any` means those that files can be written for."""
    return BackEndListing(items=await to_thread.run_sync(_backends))


@router.get("/devices/{name}", summary="One accelerator, with the source of every number", responses=problems(404))
async def get_device(request: Request, name: StoredName, caller: Reader) -> dict[str, Any]:
    """Bytes, bytes a second and FLOPs a second."""
    device = await to_thread.run_sync(load_device, name, "name")
    return device.model_dump(mode="json")


@router.get("/models/{name}", summary="One model, whole", response_model=NamedView, responses=SHOWN)
async def get_model(request: Request, name: StoredName, caller: Reader) -> Response:
    """Layers, attention, experts; its ETag is its id."""
    return await shown_document(request, MODELS, name)


@router.get("/clusters/{name}", summary="One cluster, whole", response_model=NamedView, responses=SHOWN)
async def get_cluster(request: Request, name: StoredName, caller: Reader) -> Response:
    """Pools, links and fabric, with the source of every number; its ETag is its id."""
    return await shown_document(request, CLUSTERS, name)


@router.get("/profiles/{name}", summary="Which profile a name means", response_model=NamedView, responses=SHOWN)
async def get_profile(request: Request, name: StoredName, caller: Reader) -> Response:
    """Its identity and its device; the measurements stay on the server."""
    return await shown_document(request, PROFILES, name)


@router.put(
    "/models/{name}",
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
    "/clusters/{name}",
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
    "/profiles/{name}",
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


@cache
def _builtin_models() -> tuple[dict[str, Any], ...]:
    return tuple({**model_summary(name, catalogue_model(name)), "builtin": True} for name in builtin_models())


@cache
def _builtin_clusters() -> tuple[dict[str, Any], ...]:
    return tuple({**cluster_summary(catalogue_cluster(name)), "builtin": True} for name in builtin_clusters())


@cache
def _backends() -> tuple[BackEndView, ...]:
    return tuple(BackEndView.model_validate(backend_summary(each)) for each in backends().values())


def _mapping(data: Any, name: str) -> dict[str, Any]:
    from profiles.validation import Finding, FindingsInvalid

    if not isinstance(data, dict):
        raise FindingsInvalid([Finding("", "must be an object", "send the document")], "body")
    # The name under which it is stored is the name that it has, unless the document says another.
    return {"name": name, **data} if "model_type" not in data and "architectures" not in data else data
