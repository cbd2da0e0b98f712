"""``/v1/devices/{name}/fits``, ``/v1/profiles/{name}/fits``: what is measured, how well it fits, what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Reader
from api.http.openapi import problems
from api.routes.named_documents import StoredName
from api.service import Service, service_of
from planner.answers.views.fits import FitsView
from profiles.catalogue import load_device
from profiles.errors import ProfileMissing

if TYPE_CHECKING:
    from profiles.prediction.profile import Profile

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get(
    "/devices/{name}/fits",
    summary="What plans with `profile: auto` look up for a device",
    response_model=FitsView,
    responses=problems(404, 409),
)
async def get_device_fits(request: Request, name: StoredName, caller: Reader) -> Response:
    """422 (`profile-missing`) where nothing of the device is measured on this server."""

    def found() -> Profile:
        from profiles.prediction.profile_folder import profile_of_device

        profile = profile_of_device(load_device(name, "name"))
        if profile is None:
            hint = "import logs with `meshwright profile import`, or measure one with `meshwright profile measure`"
            raise ProfileMissing(f"nothing is measured of {name} on this server", where="name", hint=hint)
        return profile

    return await _fits(service_of(request), found)


@router.get(
    "/profiles/{name}/fits",
    summary="What a named profile knows",
    response_model=FitsView,
    responses=problems(404, 409),
)
async def get_profile_fits(request: Request, name: StoredName, caller: Reader) -> Response:
    """A stored name, or a profile's id or its unique beginning."""
    service = service_of(request)

    def found() -> Profile:
        from profiles.prediction.profile_folder import find_profile, referenced_profile
        from profiles.prediction.reference import ProfileReference

        stored = service.records.named("profile", name)
        return find_profile(name) if stored is None else referenced_profile(ProfileReference.model_validate(stored[1]))

    return await _fits(service, found)


async def _fits(service: Service, find: Callable[[], Profile]) -> Response:
    """The view of a profile: profiles never change, so it is made once for each."""

    def compute() -> bytes:
        from planner.answers.views.fits import fits_view

        profile = find()
        known = service.views.get(f"fits-{profile.profile_id}")
        if known is not None:
            return known
        content = fits_view(profile, load_device(profile.device)).canonical_json().encode()
        service.views.keep(f"fits-{profile.profile_id}", content)
        return content

    return Response(await to_thread.run_sync(compute), media_type="application/json")
