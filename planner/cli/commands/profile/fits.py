"""``meshwright profile fits``: every fitted table and curve of a device, what is missing, and figures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.commands.profile.flags import Profiles
from planner.cli.options import Output, Quiet
from planner.cli.output import OutputFormat, write_answer
from planner.cli.progress import counted_progress
from planner.errors import NotFound

if TYPE_CHECKING:
    from profiles.device import Device
    from profiles.prediction.profile import Profile


class FigureChoice(StrEnum):
    """How figures are written."""

    SVG = "svg"
    PNG = "png"


INDEX = "index.html"
DeviceName = Annotated[str, typer.Argument(metavar="DEVICE", help="Catalogue name (see devices list).")]
PlotFolder = Annotated[
    Path | None,
    typer.Option("--plot", metavar="DIR", help="Draw fits and residuals into DIR, with an index.html."),
]
FigureFormat = Annotated[FigureChoice, typer.Option("--format", help="Of the figures.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("fits")(fits)


def fits(
    device: DeviceName,
    plot: PlotFolder = None,
    figure_format: FigureFormat = FigureChoice.SVG,
    profiles: Profiles = None,
    quiet: Quiet = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """What plans look up for a device: every fitted table and curve with its spread, and what is missing."""
    from planner.cli.commands.profile.fits_answer import fits_data, fits_tables
    from profiles.catalogue import load_device

    known = load_device(device, "profile fits")
    if plot is not None:
        from profiles.plots.style import require_matplotlib

        require_matplotlib()
    profile = _profile(known, profiles)
    data = fits_data(profile, known)
    if plot is not None:
        data["figures"] = _draw(profile, data, plot, figure_format, quiet=quiet)
    write_answer(data, output, lambda: fits_tables(data))


def _profile(device: Device, folder: str | None) -> Profile:
    """The profile that ``plan`` would use.  Raises NotFound with what to import or measure."""
    from profiles.observation_store.address import profiles_folder
    from profiles.prediction.profile_folder import profile_of_device

    where = profiles_folder(folder)
    profile = profile_of_device(device, where)
    if profile is None:
        raise NotFound(f"nothing is measured of {device.name}", where=str(where), hint=_what_to_import(device))
    return profile


def _what_to_import(device: Device) -> str:
    from profiles.device_names import catalogue_device
    from profiles.importers.aiconfigurator.installed import systems

    measure = "run `meshwright profile measure` on one, or import its logs: `meshwright profile import FILE`"
    try:
        known = [system for system in systems() if catalogue_device(system) == device.name]
    except NotFound:
        return f"{measure}; measured tables of some devices: pip install 'meshwright[aiconfigurator]'"
    return f"`meshwright profile import aiconfigurator --system {known[0]}`, or {measure}" if known else measure


def _draw(
    profile: Profile, data: dict[str, Any], folder: Path, choice: FigureChoice, *, quiet: bool
) -> list[dict[str, str]]:
    """Write all figures and the page that shows them; what was written, the page first."""
    from planner.cli.commands.profile.fits_answer import page_of
    from planner.operations.reading import write_file
    from profiles.plots.gallery import draw_profile

    with counted_progress("drawing", quiet=quiet) as progress:
        figures = draw_profile(profile, folder, choice.value, progress)
    write_file(folder / INDEX, page_of(data, figures))
    page = {"file": str(folder / INDEX), "title": "all figures", "caption": "All figures and tables on one page."}
    return [
        page,
        *({"file": str(folder / each.file_name), "title": each.title, "caption": each.caption} for each in figures),
    ]
