"""An importer: a format with a name, a test on the head of a file, and a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from profiles.importing.imported import Imported
    from profiles.importing.source_file import Head, SourceFile


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user says about a file that the file does not say itself.

    ``given``: facts by name (``--set operation=all_gather``): device, operation, group_size, num_nodes,
    devices_per_node, dtype, model, global_batch_size, ...; an importer takes those that it needs.
    """

    given: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """One foreign format.

    ``matches`` decides from the head alone and must be cheap and certain: a text that merely mentions the tool does
    not match.  ``takes``: ``file`` is read alone; ``files`` of one format given together are read together (ranks of
    one run); ``folder`` wants a folder.
    """

    name: str
    title: str
    matches: Callable[[Head], bool]
    read: Callable[[Sequence[SourceFile], ReadOptions], Imported]
    takes: Literal["file", "files", "folder"] = "file"
    parser_version: int = 1
