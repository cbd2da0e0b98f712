"""Figures say what they show, to the eye and to a screen reader, and are the same each time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from profiles.html_page import PageTable
from profiles.plots.coverage_map import cells_of, draw_coverage_map, slices_of
from profiles.plots.figure_file import svg_text, write_figure
from profiles.plots.gallery import FigureFile, draw_profile
from profiles.plots.page import gallery_page
from profiles.plots.size_labels import byte_words, count_words, time_words
from profiles.plots.style import SERIES, house_style
from profiles.plots.table_words import file_stem
from profiles.plots.utilization import draw_utilization, shown_sites
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.curve_table import Z80
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.residuals import site_residuals
from profiles.prediction.roofline import Roofline

Array = NDArray[np.float64]
SVG = "{http://www.w3.org/2000/svg}"
ROOF = Roofline(flops_per_s=1e15, bytes_per_s=3e12, width_bytes=2.0)
DEVICE = "h100-sxm5-80gb"


def noise(count: int) -> Array:
    return np.exp(0.05 * np.random.default_rng(7).standard_normal(count))


def matmul(sizes: Array, dtype: str = "bf16") -> OperatorTable:
    n, k, m = (each.ravel() for each in np.meshgrid(sizes, sizes, [128.0, 1024.0, 8192.0], indexing="ij"))
    roofline_s = ROOF.matmul_s(m, n, k)
    curves = build_curves(np.stack([n, k], axis=1), m, roofline_s, roofline_s / 0.6 * noise(len(m)))
    return OperatorTable(curves, ROOF, TableOrigin(operator="matmul", dtype=dtype, device=DEVICE, num_points=len(m)))


def attention() -> OperatorTable:
    axes = ([1.0, 2.0, 4.0], [8.0, 16.0, 32.0], [1.0, 4.0], [512.0, 4096.0])
    b, h, ratio, s = (each.ravel() for each in np.meshgrid(*axes, indexing="ij"))
    roofline_s = ROOF.attention_s(b, s, h, h / ratio, 128)
    sites = np.stack([b, h, h / ratio], axis=1)
    curves = build_curves(sites, s, roofline_s, roofline_s / 0.5 * noise(len(s)))
    origin = TableOrigin(operator="attention", dtype="bf16", variant="128", device=DEVICE, num_points=len(s))
    return OperatorTable(curves, ROOF, origin)


def norm() -> OperatorTable:
    moved = np.exp2(np.arange(16.0, 28.0))
    roofline_s = ROOF.moved_s(moved)
    curves = build_curves(np.ones((len(moved), 1)), moved, roofline_s, roofline_s / 0.7 * noise(len(moved)))
    return OperatorTable(curves, ROOF, TableOrigin(operator="norm", dtype="bf16", device=DEVICE, num_points=len(moved)))


@pytest.fixture(scope="module")
def profile() -> Profile:
    made = Profile(DEVICE)
    tables = [matmul(np.array([512.0, 2048.0, 8192.0])), attention(), norm()]
    lent = TableOrigin(operator="matmul", dtype="fp16", device=DEVICE, transferred_from="bf16")
    tables.append(OperatorTable(tables[0].curves, ROOF, lent))
    made.operators = {(each.origin.operator, each.origin.dtype, each.origin.variant): each for each in tables}
    sizes = np.exp2(np.arange(10.0, 28.0, 2.0))
    keys = [CollectiveKey("all_reduce", 2**power, max(2**power // 8, 1)) for power in range(1, 10)]
    made.collectives = collective_curves({key: (sizes, 1e-5 + sizes / 3e11 * key.num_nodes) for key in keys})
    origin = TableOrigin(operator="all_reduce", dtype="", device=DEVICE, num_points=len(sizes))
    made.collective_origins = tuple(origin for _ in keys)
    return made


@pytest.fixture(scope="module")
def drawn(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[FigureFile, ...]]:
    folder = tmp_path_factory.mktemp("figures")
    return folder, draw_profile(profile, folder, "svg")


@pytest.fixture
def style() -> Iterator[None]:
    with house_style():
        yield


def texts(path: Path) -> str:
    return " ".join(node.text or "" for node in ET.parse(path).iter(f"{SVG}text"))


def test_every_measured_table_has_its_figures_and_a_transferred_one_has_none(
    drawn: tuple[Path, tuple[FigureFile, ...]],
) -> None:
    names = {figure.file_name for figure in drawn[1]}
    kinds = ("utilization", "residuals", "predicted")
    assert names == {
        *(f"matmul-bf16-{kind}.svg" for kind in (*kinds, "coverage")),
        *(f"attention-bf16-128-{kind}.svg" for kind in (*kinds, "coverage")),
        *(f"norm-bf16-{kind}.svg" for kind in kinds),
        "all-reduce-part-1-of-2.svg",
        "all-reduce-part-2-of-2.svg",
    }


def test_a_figure_is_xml_with_role_title_and_caption(drawn: tuple[Path, tuple[FigureFile, ...]]) -> None:
    folder, figures = drawn
    for figure in figures:
        root = ET.parse(folder / figure.file_name).getroot()
        title, caption = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert caption is not None
        assert (title.text, caption.text) == (figure.title, figure.caption)
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{title.get('id')} {caption.get('id')}"
        assert figure.caption.endswith(".")
        assert DEVICE in figure.caption


def test_axes_are_labelled_with_units(drawn: tuple[Path, tuple[FigureFile, ...]]) -> None:
    folder, _ = drawn
    for name, labels in {
        "matmul-bf16-utilization": ("share of the roofline (%)", "rows m of the product"),
        "norm-bf16-utilization": ("bytes read and written", "MiB"),
        "matmul-bf16-residuals": ("predicted over measured time, minus 1 (%)", "in own interval"),
        "attention-bf16-128-predicted": ("measured time", "predicted over measured time", "µs"),
        "attention-bf16-128-coverage": ("batch size (sequences)", "query heads", "4 query heads a kv head"),
        "all-reduce-part-1-of-2": ("bus bandwidth (GB/s)", "message size", "8 ranks, 1 node"),
        "all-reduce-part-2-of-2": ("512 ranks, 64 nodes",),
    }.items():
        shown = texts(folder / f"{name}.svg")
        assert [label for label in labels if label not in shown] == []


def only(profile: Profile, operator: str) -> Profile:
    """The profile with one operator alone: drawing takes its time."""
    kept = {key: table for key, table in profile.operators.items() if key[0] == operator}
    return Profile(DEVICE, operators=kept)


def test_the_same_table_gives_the_same_bytes(
    profile: Profile, drawn: tuple[Path, tuple[FigureFile, ...]], tmp_path: Path
) -> None:
    figures = draw_profile(only(profile, "attention"), tmp_path, "svg")
    assert len(figures) == 4
    for figure in figures:
        assert (tmp_path / figure.file_name).read_bytes() == (drawn[0] / figure.file_name).read_bytes()


def test_nothing_global_stays_behind(profile: Profile, tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    draw_profile(only(profile, "norm"), tmp_path, "svg")
    assert dict(mpl.rcParams) == before


def test_series_differ_without_their_colour() -> None:
    assert len({marker for _, marker, _ in SERIES}) == len({str(line) for _, _, line in SERIES}) == len(SERIES)


@pytest.mark.usefixtures("style")
def test_a_png_carries_its_caption(tmp_path: Path) -> None:
    table = norm()
    path = write_figure(draw_utilization(table, site_residuals(table)), tmp_path, "png")
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert b"Share of the roofline that norm bf16 reaches" in content


@pytest.mark.usefixtures("style")
def test_words_of_the_environment_cannot_break_the_drawing() -> None:
    table = norm()
    origin = table.origin.model_copy(update={"environment": 'a <script> & "b"'})
    text = svg_text(draw_utilization(OperatorTable(table.curves, ROOF, origin), site_residuals(table)))
    caption = ET.fromstring(text).find(f"{SVG}desc")
    assert caption is not None
    assert 'a <script> & "b"' in (caption.text or "")


def test_shown_sites_go_from_small_to_large() -> None:
    table = matmul(np.exp2(np.arange(6.0, 13.0)))
    rows = shown_sites(table)
    volumes = np.log2(table.curves.sites[rows]).sum(axis=1)
    assert len(rows) == len(set(rows)) == 6
    assert np.all(np.diff(volumes) >= 0)
    assert volumes[-1] - volumes[0] > 6


def test_a_coverage_map_counts_every_site_and_tells_the_stated_interval() -> None:
    table = matmul(np.array([512.0, 2048.0, 8192.0]))
    (plane,) = slices_of(table)
    cells = cells_of(table, plane, 1024.0)
    assert cells.num_sites.sum() == 9
    assert cells.x.tolist() == [256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0]
    assert cells.num_sites[1, 1] == 1
    assert cells.num_sites[2, 2] == 0
    # Around an unmeasured shape in the box: what the table itself says there.
    x = np.rint(1024.0 * np.exp2([-1 / 3, 0.0, 1 / 3]))
    sites = np.array([[n, k] for n in x for k in x])
    _, sigma, _ = table.curves.predict(np.full(9, 1024.0), sites)
    assert cells.half_percent[2, 2] == pytest.approx(100.0 * np.expm1(Z80 * np.median(sigma)))


def test_a_coverage_map_says_nothing_far_from_any_site() -> None:
    table = matmul(np.array([32.0, 64.0, 32768.0]))
    (plane,) = slices_of(table)
    cells = cells_of(table, plane, 1024.0)
    silent = np.isnan(cells.half_percent)
    middle = cells.x.tolist().index(1024.0)
    assert silent[middle, middle]
    assert not silent[cells.num_sites > 0].any()


def test_a_slice_of_attention_holds_whole_groups_of_heads() -> None:
    table = attention()
    planes = slices_of(table)
    assert [plane.value for plane in planes] == [1.0, 4.0]
    for plane in planes:
        own = table.curves.sites[plane.holds(table.curves.sites)]
        assert np.all(own[:, 1] / own[:, 2] == plane.value)
        assert cells_of(table, plane, 4096.0).num_sites.sum() == len(own) == 9


def test_one_curve_has_no_map() -> None:
    assert draw_coverage_map(norm()) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (count_words(512), "512"),
        (count_words(4096), "4,096"),
        (count_words(65536), "64k"),
        (count_words(10000), "10,000"),
        (byte_words(512), "512 B"),
        (byte_words(1 << 29), "512 MiB"),
        (time_words(1e-5), "10 µs"),
        (time_words(2.0), "2 s"),
        (time_words(5e-9), "5 ns"),
        (file_stem("matmul", "fp8_block", "", "../x"), "matmul-fp8-block-x"),
    ],
)
def test_words(said: str, words: str) -> None:
    assert said == words


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = {name: value or "" for name, value in attrs}
        self.sources += [given["src"]] if "src" in given else []
        self.targets += [given["href"]] if "href" in given else []
        self.ids += [given["id"]] if "id" in given else []


def test_the_page_shows_every_figure_and_nothing_from_elsewhere() -> None:
    figures = [
        FigureFile("matmul bf16", "matmul bf16: residuals", "Caption <one>.", "matmul-bf16-residuals.svg"),
        FigureFile("norm bf16", "norm bf16: residuals", "Caption two.", "norm-bf16-residuals.svg"),
    ]
    table = PageTable("Operators", ("operator", ">points"), [("matmul <bf16>", "9")])
    page = gallery_page("Profile", ["fact & figure"], [table], ["no norms"], figures)
    found = Links()
    found.feed(page)
    assert found.sources == [figure.file_name for figure in figures]
    inside = {target.removeprefix("#") for target in found.targets if target.startswith("#")}
    assert inside <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert {target for target in found.targets if not target.startswith("#")} == set(found.sources)
    assert "script" not in found.tags
    assert "matmul &lt;bf16&gt;" in page
    assert "Caption &lt;one&gt;." in page
    assert '<td class="number">9</td>' in page
    assert "fact &amp; figure" in page
