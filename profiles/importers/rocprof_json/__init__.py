"""rocprofv3: kernels and copies of an AMD GPU.  Reads the JSON of ``rocprofv3 --output-format json``, plain or gzip.

Recognised by the top key ``rocprofiler-sdk-tool``, a list with one entry a process.  A dispatch names its kernel by
``kernel_id`` (the symbol holds the name) and its device by ``agent_id``; a copy holds its bytes.  Times are ns.
Launches of one kernel, grid and workgroup are reduced to one observation.  The file also holds the name of the host,
the command line and file names: none of these is read.
Source: ROCm/rocprofiler-sdk source/docs (JSON output schema); AMD-AGI/TraceLens tests/rocprof/908_results.json.gz.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.importing.format import Format, ReadOptions

if TYPE_CHECKING:
    from profiles.importing.imported import Imported
    from profiles.importing.source_file import Head, SourceFile


def matches(head: Head) -> bool:
    """Whether the first key is the tool's name."""
    return head.text.lstrip().startswith("{") and '"rocprofiler-sdk-tool"' in head.text[:4096]


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All processes of one file.  Raises DocumentInvalid without a kernel or a copy."""
    from profiles.importers.rocprof_json.reading import read_document

    return read_document(files[0], options)


FORMAT = Format("rocprof-json", "rocprofv3 JSON", matches, read)
