"""The back-end that ``docs/how-to/add-a-back-end.md`` adds: its files, and the package that they make."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "add-a-back-end.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`(meshwright_nanogpt/\w+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_files() -> dict[str, str]:
    """Path in the package -> text, as the page says."""
    return dict(FILE.findall(PAGE))


def install_page(folder: Path) -> None:
    """Leave the package in ``folder`` as pip would: the page's files, and metadata of its project table."""
    for name, text in page_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(PROJECT.findall(PAGE)[0])["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in project["entry-points"].items()
    )
    install_metadata(folder, project["name"], project["version"], points)


def install_metadata(folder: Path, name: str, version: str, entry_points: str) -> None:
    """The part of a package's metadata that ``importlib.metadata`` reads."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
