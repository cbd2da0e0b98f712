"""The store of observations: an append-only folder of Parquet files, one a batch and kind.

    address     which folder: --profiles, $MESHWRIGHT_PROFILES or the data folder
    schema      columns of the four kinds, built from the dataclasses; rows -> table -> rows
    checking    is a table that an importer gives directly usable?
    batch       what is known about one batch: environment, source, counts
    preparing   an import -> batches ready to be stored, with their ids
    files       folders, locks, atomic writes, leftovers of killed imports
    store       the ``ObservationStore``: add, list, withdraw
    query       rows by device, operator, dtype, format, batch
    conflicts   the same thing measured differently
    errors      what can go wrong

pyarrow is imported where tables are made, not by this package.
"""

from __future__ import annotations
