"""PyTorch profiler (Kineto) traces: Chrome trace JSON, plain, gzip or in a tar, of one or of several ranks of a run.

Recognised by the keys that Kineto writes (``schemaVersion`` with ``deviceProperties``), by its event categories
together with ``External id`` (event lists without a head), or by the ``CPU functions`` process of the profiler that
came before Kineto.  Times are microseconds, since the epoch or since ``baseTimeNanoseconds``.

Traps: the duration of a collective kernel includes waiting for the last rank; shapes exist only with
``record_shapes``; kernels replayed by a CUDA graph belong to no operator; bare backslashes and ``nan`` make some files
invalid JSON.  The parts of this package: ``events`` (decoding), ``call_tree`` (who called whom), ``operators``,
``copies``, ``collectives`` and ``rank_merge``, ``timeline``, ``steps``, ``reading`` (all together).
Source: pytorch/kineto libkineto/src/output_json.cpp; pytorch/pytorch torch/csrc/profiler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.importing.format import Format, ReadOptions
from profiles.importing.tar_members import is_tar

if TYPE_CHECKING:
    from profiles.importing.imported import Imported
    from profiles.importing.source_file import Head, SourceFile

_CATEGORY = re.compile(
    r'"cat"\s*:\s*"(?:cpu_op|kernel|Kernel|cuda_runtime|cuda_driver|hip_runtime|Runtime|Operator|user_annotation|'
    r'gpu_memcpy|gpu_memset|ac2g|fwdbwd)"'
)
_EXTERNAL_ID = re.compile(r'"[Ee]xternal id"\s*:')
_OTHER_TOOLS = ("async_npu", "Ascend Hardware", "/device:TPU", '"hlo_op"', "rocprofiler-sdk")


def matches(head: Head) -> bool:
    """Whether the head is that of a Kineto trace, or of an archive that begins with one."""
    if is_tar(head):
        from profiles.importers.kineto.archive import first_text

        text = first_text(head)
        return bool(text) and _is_trace(text)
    return _is_trace(head.text)


def _is_trace(head_text: str) -> bool:
    text = head_text.lstrip("\ufeff \t\r\n")
    if text[:1] not in ("{", "[") or any(mark in text for mark in _OTHER_TOOLS):
        return False
    if '"schemaVersion"' in text and ('"deviceProperties"' in text or '"distributedInfo"' in text):
        return True
    if '"traceEvents"' not in text and text[0] != "[":
        return False
    if re.search(r'"pid"\s*:\s*"C(?:PU|UDA) functions"', text):
        return True
    return bool(_CATEGORY.search(text) and _EXTERNAL_ID.search(text))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All observations of the traces; several are taken as ranks of one run.  Raises DocumentInvalid."""
    from profiles.importers.kineto.reading import read_traces

    return read_traces(files, options)


FORMAT = Format(name="kineto", title="PyTorch profiler trace (Kineto)", matches=matches, read=read, takes="files")
