"""Commands of the host in the audit trail: recorded as done, by the user of the operating system."""

from __future__ import annotations

import os
import pwd
import uuid
from contextlib import suppress

from planner.store.records import AuditEvent


def done_here(command: str, resource: str) -> AuditEvent:
    """The event of a command that changes the service's own tables."""
    user = f"uid {os.geteuid()}"
    # A container's user need not have a name.
    with suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
    return AuditEvent("done", uuid.uuid4().hex, "command", user, "CLI", command, resource)
