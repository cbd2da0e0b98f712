"""What all tiers say about a folder: our rules always, the back-end's own validators where they are ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.environment import is_ready
from planner.backends.checking.validator import Validator, Verdict
from planner.backends.checking.worker import Worker
from planner.backends.emission.emission import Finding
from planner.backends.folders.catalogue import applicable
from planner.backends.folders.directory import folder_findings
from planner.errors import ValidatorUnavailable


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A validator that has something to say about the folder but was not asked, and why."""

    validator: str
    version: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All tiers of one folder."""

    folder: EmittedFolder
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    not_asked: tuple[NotAsked, ...]

    @property
    def ok(self) -> bool:
        """Whether nobody objects."""
        return not self.findings and all(verdict.accepted for verdict in self.verdicts)


class Checker:
    """Checks folders, its validators kept warm between them.  Use it as a context manager.

    ``wanted``: (validator, version) pairs that must be asked, installed where they are missing; they replace the same
    validator's default version.  Other validators are asked only where they are ready.
    """

    def __init__(self, wanted: Sequence[tuple[Validator, str]] = ()) -> None:
        self.wanted = {validator.name: (validator, version) for validator, version in wanted}
        self._workers: dict[tuple[str, str], Worker] = {}

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers.values():
            worker.close()

    def check(self, folder: EmittedFolder) -> CheckReport:
        """All tiers.  Raises ValidatorUnavailable when a wanted validator cannot be asked."""
        findings = folder_findings(folder)
        edited = any(finding.rule == "emission.edited" for finding in findings)
        verdicts: list[Verdict] = []
        not_asked: list[NotAsked] = []
        for validator in applicable(folder):
            demanded = validator.name in self.wanted
            version = self.wanted[validator.name][1] if demanded else release_of(validator, folder)
            reason = _why_not(validator, version, edited=edited, demanded=demanded)
            if reason:
                not_asked.append(NotAsked(validator.name, version, reason))
                continue
            try:
                verdicts.append(self._worker(validator, version).ask(validator.request(folder)))
            except ValidatorUnavailable as error:
                if demanded:
                    raise
                not_asked.append(NotAsked(validator.name, version, error.what))
        not_asked += [
            NotAsked(name, version, "it has nothing to check in this folder")
            for name, (_, version) in self.wanted.items()
            if name not in {each.validator for each in verdicts} | {each.validator for each in not_asked}
        ]
        return CheckReport(folder, tuple(findings), tuple(verdicts), tuple(not_asked))

    def _worker(self, validator: Validator, version: str) -> Worker:
        key = (validator.name, version)
        if key not in self._workers:
            self._workers[key] = Worker(validator, version)
        return self._workers[key]


def release_of(validator: Validator, folder: EmittedFolder) -> str:
    """The release that the files are written for, where the validator is of that software."""
    return str(folder.versions.get(validator.name, validator.default_version))


def _why_not(validator: Validator, version: str, *, edited: bool, demanded: bool) -> str:
    if validator.executes_files and edited:
        return "it would run code of the folder, and files of the folder were edited"
    if not demanded and not is_ready(validator, version):
        return f"not installed; --with {validator.name}=={version} installs it"
    return ""
