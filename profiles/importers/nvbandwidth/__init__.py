"""nvbandwidth, v0.1 to v0.8: copies host-device and device-device by copy engine or SM, text and JSON (``-j``).

Recognised by a matrix description (``memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)``) or by the JSON object
``nvbandwidth`` with ``testcases``.  Units: GB of 10^9 bytes a second; latency tests in ns.
Traps: the arrow gives the way of the data, not row to column; bidirectional tests report one direction while the
other runs, only ``Total`` matrices are sums; ``N/A`` and (old) 0.00 on the diagonal are not measured; waived tests
have no name in the text form; ``device_local_copy`` counts each copied byte once.
Source: NVIDIA/nvbandwidth README.md, output.cpp, json_output.cpp, testcases_ce.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.importers.nvbandwidth.json_form import read_json
from profiles.importers.nvbandwidth.matrix import is_description
from profiles.importers.nvbandwidth.text_form import TextForm
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile

_JSON = re.compile(r'\s*\{\s*"nvbandwidth"\s*:')


def matches(head: Head) -> bool:
    """Whether the text holds a matrix description of nvbandwidth or is its JSON."""
    if _JSON.match(head.text):
        return True
    return any(is_description(line) for line in head.text.splitlines())


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every cell that was measured, as a link; cells that were not available as failures."""
    file = files[0]
    imported = Imported(tool="nvbandwidth")
    text = file.text()
    if text.lstrip().startswith("{"):
        links, device, known = read_json(text, file.where, imported)
    else:
        form = TextForm(imported)
        for line in short_lines(file, imported):
            form.line(line)
        imported.tool_version = form.facts.get("version", "")
        links, device, known = form.links, next(iter(form.devices.values()), ""), form.environment()
    batches = Batches()
    batches.of(environment_of(options, device, **known)).links.extend(links)
    return finished(imported, batches, file, "no matrix with values", "check that the benchmark ran to its end")


FORMAT = Format("nvbandwidth", "nvbandwidth (text and JSON)", matches, read)
