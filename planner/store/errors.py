"""What can go wrong with the database, hung on the tree of ``profiles.errors``.

    MeshwrightError
    ├── NotFound, Conflict              (profiles.errors)
    └── StoreError                      exit 2   the database cannot be used as it is
        ├── StoreUnavailable            exit 2   no connection, no driver, no permission, locked for too long
        ├── StoreReadOnly               exit 2   the file, folder or server refuses writes
        ├── StoreFull                   exit 2   no space left
        ├── StoreCorrupt                exit 2   not a database, or damaged
        ├── StoreOutdated               exit 4   the schema is older than the software
        ├── StoreTooNew                 exit 4   the schema is newer than the software
        ├── PlanUnreadable              exit 4   a stored plan that this release cannot read
        └── AmbiguousPlan               exit 2   a prefix that fits several plans

A failed write changes nothing: every save is one transaction.
"""

from __future__ import annotations

from profiles.errors import MeshwrightError


class StoreError(MeshwrightError):
    """The plan database cannot be used as it is."""

    slug = "store-error"
    exit_code = 2
    http_status = 500


class StoreUnavailable(StoreError):
    """No connection: server down, driver absent, permission denied, or locked for too long."""

    slug = "store-unavailable"
    http_status = 503


class StoreReadOnly(StoreError):
    """The database refuses writes."""

    slug = "store-read-only"
    http_status = 503


class StoreFull(StoreError):
    """No space is left for the database."""

    slug = "store-full"
    http_status = 507


class StoreCorrupt(StoreError):
    """The file is not a database, or it is damaged."""

    slug = "store-corrupt"
    http_status = 500


class StoreOutdated(StoreError):
    """The database has an older schema and is shared, so it is not upgraded behind your back."""

    slug = "store-outdated"
    exit_code = 4
    http_status = 503


class StoreTooNew(StoreError):
    """The database has a schema that this release does not know."""

    slug = "store-too-new"
    exit_code = 4
    http_status = 503


class PlanUnreadable(StoreError):
    """A stored plan has a form that this release cannot read."""

    slug = "plan-unreadable"
    exit_code = 4
    http_status = 409


class AmbiguousPlan(StoreError):
    """A plan prefix fits more than one plan."""

    slug = "ambiguous-plan"
    http_status = 409
