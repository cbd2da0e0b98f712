"""The output of ``nvbandwidth -j``: one object with testcases; matrices hold numbers as text, or "N/A"."""

from __future__ import annotations

import re
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importers.nvbandwidth.matrix import Cell, Test, is_description, store_cell
from profiles.importers.nvbandwidth.text_form import cuda_version
from profiles.importing.imported import Imported
from profiles.observations.records import LinkObservation
from profiles.observations.timing import Statistic
from profiles.safe_json import load_json_text

_MIB = 1 << 20
_MAX_SIDE = 4096
_DEVICE = re.compile(r"^(?:\d+:\s*)?(.+?)\s*(?:\([0-9A-Fa-f:.]+\))?\s*$")


def read_json(text: str, where: str, imported: Imported) -> tuple[list[LinkObservation], str, dict[str, Any]]:
    """(links, device as reported, what else is known of the environment).  Raises DocumentInvalid."""
    document = load_json_text(text, where)
    root = document.get("nvbandwidth") if isinstance(document, dict) else None
    cases = root.get("testcases") if isinstance(root, dict) else None
    if not isinstance(root, dict) or not isinstance(cases, list):
        raise DocumentInvalid("there is no list nvbandwidth/testcases", where=where, hint="run nvbandwidth with -j")
    imported.tool_version = str(root.get("version", ""))[:40]
    if root.get("error"):
        imported.flag("test-failed", "the tool reported an error of the whole run")
    links: list[LinkObservation] = []
    for index, case in enumerate(cases):
        if isinstance(case, dict):
            links.extend(_links_of_case(root, case, index, imported))
        else:
            imported.bad(f"/nvbandwidth/testcases/{index}", "a testcase is not an object")
    devices = root.get("GPU Device list")
    names = [each for each in devices if isinstance(each, str)] if isinstance(devices, list) else []
    match = _DEVICE.match(names[0]) if names else None
    environment = {
        "num_devices": len(names) or None,
        "driver_version": str(root.get("Driver Version", ""))[:40] or None,
        "runtime_version": cuda_version(str(root.get("CUDA Runtime Version", ""))),
    }
    return links, match.group(1) if match else "", environment


def _links_of_case(root: dict[str, Any], case: dict[str, Any], index: int, imported: Imported) -> list[LinkObservation]:
    name, status = str(case.get("name", ""))[:80], str(case.get("status", ""))
    pointer = f"/nvbandwidth/testcases/{index}"
    if status in ("Waived", "Not Found"):
        imported.skip("test waived" if status == "Waived" else "test not found")
        return []
    if status == "Error" or case.get("error"):
        imported.flag("test-failed", f"the test {name} reported an error")
        return []
    description, matrix = str(case.get("bandwidth_description", "")), case.get("bandwidth_matrix")
    if not is_description(description) or not isinstance(matrix, list):
        imported.bad(pointer, "the testcase has no description and matrix", "is the output complete?")
        return []
    test = Test(name, description, *_measured_how(root))
    links: list[LinkObservation] = []
    width = len(matrix[0]) if matrix and isinstance(matrix[0], list) else 0
    for row, cells in enumerate(matrix[:_MAX_SIDE]):
        if not isinstance(cells, list) or len(cells) != width or not 0 < width <= _MAX_SIDE:
            imported.bad(f"{pointer}/bandwidth_matrix/{row}", "the row is not as long as the first one")
            continue
        for column, cell in enumerate(cells):
            where = f"{pointer}/bandwidth_matrix/{row}/{column}"
            link = store_cell(test, Cell(row, column, str(cell), where, index), imported)
            if link is not None:
                links.append(link)
    return links


def _measured_how(root: dict[str, Any]) -> tuple[int | None, Statistic, int | None]:
    """(buffer in bytes, statistic, samples): newer versions write them into the root."""
    buffer, samples, mean = root.get("bufferSize"), root.get("testSamples"), root.get("useMean")
    size_bytes = buffer * _MIB if isinstance(buffer, int) and not isinstance(buffer, bool) and buffer > 0 else None
    count = samples if isinstance(samples, int) and not isinstance(samples, bool) and samples > 0 else None
    statistic: Statistic = ("mean" if mean else "median") if isinstance(mean, bool) else "unknown"
    return size_bytes, statistic, count
