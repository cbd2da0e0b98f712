"""The identity of jobs: ids are made of content, so a second insert finds the first row.

job id   first 32 hex digits of SHA-256(request, software) + "-" + generation.  Generation 1 is the first job of this
         content; after a job that failed or was cancelled the next generation starts.  Two submitters that race make
         the same id, and one row.
key id   SHA-256(owner, key): a row beside the jobs that says which job the owner's key got, and of what content.
"""

from __future__ import annotations

import hashlib

from api.jobs.board import JobRequest
from planner.store import software_signature

CONTENT_DIGITS = 32


def content_of(request: JobRequest) -> str:
    """What makes two requests the same question to the same software."""
    return hashlib.sha256(f"{request.content_hash()}\0{software_signature()}".encode()).hexdigest()[:CONTENT_DIGITS]


def job_id(content: str, generation: int) -> str:
    """The id of the job of some content."""
    return f"{content}-{generation}"


def generation_of(job: str) -> int:
    """Inverse of ``job_id``; 0 for what is no job id."""
    _, _, digits = job.rpartition("-")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def key_id(owner: str, key: str) -> str:
    """The id of an owner's key."""
    return "key-" + hashlib.sha256(f"{len(owner)}\0{owner}\0{key}".encode()).hexdigest()
