"""NCCL Inspector: what NCCL's own profiler plug-in (NCCL 2.28 and later) wrote during a real job.

Two forms: a stream of JSON objects (``records``), one file a process, and Prometheus text (``metrics``).  Give the
files of all ranks together: a collective lasts on each rank from its own start, so the rank that came last waited
least and shows the communication itself; with one rank's file alone the waiting is included.  Everything is in situ:
other traffic and computation ran at the same time.  Host, job and communicator names are never stored.
Source: NVIDIA/nccl plugins/profiler/inspector (README, json.cc, inspector.cc: inspectorComputeCollBw).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.importers.nccl_inspector.metrics import METRIC, read_metrics
from profiles.importers.nccl_inspector.records import Records
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile

_RECORD = re.compile(r'"(?:coll_perf|p2p_perf|dump_stats)"\s*:\s*\{')
_CONTEXT = re.compile(r'"(?:n_ranks|coll_msg_size_bytes|p2p_msg_size_bytes|coll_records)"\s*:')


def matches(head: Head) -> bool:
    """Whether the text is one of the two forms."""
    if head.text.lstrip()[:1] == "{":
        return bool(_RECORD.search(head.text)) and bool(_CONTEXT.search(head.text))
    return bool(METRIC.search(head.text))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """The files of one job together.  Raises DocumentInvalid when they hold no usable record."""
    imported = Imported("nccl-inspector")
    batches = Batches()
    batch = batches.of(environment_of(options, communication_library="nccl"))
    records = Records(imported)
    for index, file in enumerate(files):
        prefix = f"{file.name}:" if len(files) > 1 else ""
        if file.head().text.lstrip()[:1] == "{":
            records.read(file, prefix, index)
        else:
            batch.collectives.extend(read_metrics(file, prefix, imported))
    batch.collectives.extend(records.observations())
    imported.tool_version = records.version
    imported.facts["num_files"] = len(files)
    hint = "give the files that the plug-in wrote, those of all ranks together"
    return finished(imported, batches, files[0], "there is no completed collective", hint)


FORMAT = Format("nccl-inspector", "NCCL Inspector (JSON, Prometheus)", matches, read, takes="files")
