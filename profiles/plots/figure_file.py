"""Figure files: SVG or PNG with title and caption inside, the same bytes for the same figure."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from profiles.plots.style import Drawn

FigureFormat = Literal["svg", "png"]


def write_figure(drawn: Drawn, folder: Path, figure_format: FigureFormat) -> Path:
    """Write ``<name>.<format>`` whole or not at all.  Call inside ``house_style``."""
    content = svg_text(drawn).encode() if figure_format == "svg" else png_bytes(drawn)
    path = folder / f"{drawn.name}.{figure_format}"
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
    return path


def svg_text(drawn: Drawn) -> str:
    """An SVG that a screen reader can tell: role, title and description; no date."""
    buffer = io.StringIO()
    metadata = {"Title": drawn.title, "Description": drawn.caption, "Creator": "meshwright", "Date": None}
    drawn.figure.savefig(buffer, format="svg", metadata=metadata)
    text = buffer.getvalue()
    title = f"<title>{escape(drawn.title)}</title>"
    told = f'<title id="title">{escape(drawn.title)}</title>\n <desc id="desc">{escape(drawn.caption)}</desc>'
    text = text.replace(title, told, 1)
    return text.replace("<svg ", '<svg role="img" aria-labelledby="title desc" ', 1)


def png_bytes(drawn: Drawn) -> bytes:
    """A PNG with title and caption in its text."""
    buffer = io.BytesIO()
    metadata = {"Title": drawn.title, "Description": drawn.caption, "Software": "meshwright"}
    drawn.figure.savefig(buffer, format="png", metadata=metadata)
    return buffer.getvalue()
