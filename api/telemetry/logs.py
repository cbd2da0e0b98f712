"""The lines of the log: text for people or JSON for machines, with the request that each belongs to.

Every line goes to stderr.  Inside a request each line carries its id, inside an attempt at a job the job's, whoever
writes it.  Whatever looks like a key, a token or a password is blotted out of the finished line: nothing should put one
there, and should something do, this is the last place to stop it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

LogFormat = Literal["text", "json"]

CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("meshwright_log_context", default={})  # noqa: B039  # never changed
"""What every line says here: ``request_id``, ``job_id``, ``trace_id``."""
FIELDS = "fields"
"""Name under which a line's own fields travel: ``log.info("...", extra={FIELDS: {...}})``."""

_SECRETS = (
    (re.compile(r"\b(mw_[0-9A-Za-z]{1,16})\.[A-Za-z0-9_-]+"), r"\1.***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*)*"), "***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+"), r"\1 ***"),
    (re.compile(r"(://[^\s/:@\"']*):[^\s/@\"']+@"), r"\1:***@"),
)


class JsonLines(logging.Formatter):
    """One JSON object a line: at, level, logger, message, the context, the fields, the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "at": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=True, default=str))


class TextLines(logging.Formatter):
    """The same for people; an exception follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        words = [_moment(record), record.levelname, record.name, record.getMessage().replace("\n", "\\n")]
        words += [f"{name}={_shown(value)}" for name, value in _fields(record).items()]
        line = " ".join(words)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_secrets(line)


def configure_logging(form: LogFormat) -> None:
    """Send everything that this process logs to stderr, in this form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)


def without_secrets(text: str) -> str:
    """The text with keys, tokens and passwords blotted out."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    own: Mapping[str, Any] = getattr(record, FIELDS, {})
    return {name: value for name, value in {**CONTEXT.get(), **own}.items() if value is not None and value != ""}


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if re.fullmatch(r"[\w./:@{}+-]+", text) else json.dumps(text)
