"""Parts of a text that could name a person, a host or a secret are removed before anything is stored.

Replaced by ``<kind>``: IP addresses (v4, v6), MAC addresses and GUIDs, e-mail addresses, home folders, URLs with
credentials, and values behind words such as token, key, password, secret.  Host names are known only to the importer
that finds them in a tool's own columns: it passes them in, and every later mention becomes ``<host>``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("secret", re.compile(r"(?i)(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")),
    (
        "secret",
        re.compile(
            r"(?i)\b[\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential)s?[\w-]*\s*[=:]\s*"
            r"[\"']?([^\s\"',;]{4,})"
        ),
    ),
    ("secret", re.compile(r"\b(?:hf_|ghp_|gho_|glpat-|sk-|xox[bp]-|AKIA)[A-Za-z0-9_-]{12,}")),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*[A-Za-z]\b")),
    ("mac", re.compile(r"\b(?:[0-9A-Fa-f]{2}[:-]){5,19}[0-9A-Fa-f]{2}\b")),
    ("ip", re.compile(r"(?<![\w.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?![\w.]*\d)")),
    ("ip", re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{1,4})*(?![\w:])")),
    ("guid", re.compile(r"\b0x[0-9A-Fa-f]{16}\b")),
    ("user", re.compile(r"(?<=/home/)[^/\s]+|(?<=/Users/)[^/\s]+")),
)


@dataclass(slots=True)
class Redactor:
    """Cleans texts and counts what it removed, by kind."""

    hosts: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def knowing(cls, hosts: Iterable[str]) -> Redactor:
        """A redactor that also removes these host names (longer ones first)."""
        return cls(frozenset(host for host in hosts if len(host) > 1))

    def clean(self, text: str) -> str:
        """The text without names and secrets."""
        for kind, pattern in _RULES:
            text = pattern.sub(lambda match, kind=kind: self._replace(match, kind), text)  # type: ignore[misc]
        for host in sorted(self.hosts, key=len, reverse=True):
            if host in text:
                self.counts["host"] += text.count(host)
                text = text.replace(host, "<host>")
        return text

    def _replace(self, match: re.Match[str], kind: str) -> str:
        self.counts[kind] += 1
        whole = match.group()
        if match.lastindex:
            start = match.start(1) - match.start()
            return whole[:start] + f"<{kind}>" + whole[start + len(match.group(1)) :]
        return f"<{kind}>"
