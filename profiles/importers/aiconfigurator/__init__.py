"""AIConfigurator performance tables (``*_perf.parquet``): measured operators and collectives of inference frameworks.

Recognised by the Parquet magic; told apart by the column names, which differ by operator and by generation, so nothing
depends on the order.  Times are milliseconds in ``latency`` and ``avg_ms``, microseconds in ``*_us`` and in the
``latency`` of the MoE all-to-all tables (it equals ``transmit_us + notify_us`` there).  ``message_size`` counts
elements.  ``*_eager`` rows include Python's launch time and are left out.  The version in the path may differ from the
``version`` of the rows: the row's is stored, the path's is a fact.

Source: ai-dynamo/aiconfigurator@095f58a51 (Apache-2.0), package ``aiconfigurator-core`` 0.12.0, and its collectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions

if TYPE_CHECKING:
    from profiles.importing.imported import Imported
    from profiles.importing.source_file import Head, SourceFile

MOST_CELLS = 400_000_000
"""Rows times columns: repeated values take no space on disk, but 8 bytes each in memory."""


def matches(head: Head) -> bool:
    """Whether the file is Parquet: no other format here is."""
    return head.raw[:4] == b"PAR1"


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One table.  Raises DocumentInvalid for damaged Parquet, unknown columns, or a table without usable rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from profiles.importers.aiconfigurator.table import imported_table

    (file,) = files
    try:
        parquet = pq.ParquetFile(str(file.path))
        if parquet.metadata.num_rows * parquet.metadata.num_columns > MOST_CELLS:
            raise DocumentInvalid(
                f"the table has {parquet.metadata.num_rows:,} rows of {parquet.metadata.num_columns:,} columns",
                where=file.where,
                hint=f"at most {MOST_CELLS:,} cells are read; split it",
            )
        return imported_table(parquet.read(), file, options.given)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise DocumentInvalid(
            f"not a readable performance table: {str(error)[:200]}",
            where=file.where,
            hint="copy the file again; columns must have the types that AIConfigurator writes",
        ) from None


FORMAT = Format("aiconfigurator", "AIConfigurator performance table (Parquet)", matches, read)
