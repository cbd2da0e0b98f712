"""The back-ends that ``--backend`` names: names and releases of the registry, all findings at once.

The registry loads every back-end's room, so it is imported when a name is read, never for a ``--help``.
"""

from __future__ import annotations

from planner.errors import DocumentInvalid, MeshwrightError, NotFound
from planner.strategy.spelling import did_you_mean

ANY = "any"
"""``planner.question.problem.ANY``, for defaults of flags: importing that module takes longer than a ``--help`` may."""
BEST = "best"
"""For ``--emit``: the back-end of the plan itself."""
RENAMED = {
    "--target": "--backend",
    "--framework": "--backend",
    "-t": "--backend",
    "--framework-version": "--software-version",
}
"""Flags of earlier versions, by what they are now."""


def parse_backends(text: str, where: str = "--backend") -> tuple[str, ...]:
    """``megatron,torchtitan==0.2.2`` as its parts, a default release left out: one question has one spelling.

    Raises NotFound (exit 3) where names or releases are not known, DocumentInvalid (exit 2) for anything else.
    """
    from planner.backends.registry import backends
    from planner.question.problem import ANY as EVERY
    from planner.question.problem import UNRESTRICTED

    words, findings = _words(text, where)
    names: list[str] = []
    for word in words:
        try:
            names.append(word if word == EVERY else _spelled(word, (EVERY, *backends()), where))
        except NotFound as error:
            findings.append(error)
    alone = [name for name in names if name in (EVERY, UNRESTRICTED)]
    if alone and len(words) > 1:
        findings.append(DocumentInvalid(f"{alone[0]} stands alone", hint=f"drop {alone[0]}, or drop the others"))
    _raise(findings, where)
    return tuple(names)


def parse_emitted(text: str | None, where: str = "--emit") -> tuple[str, ...]:
    """The same for back-ends that files are written for; ``best`` is the plan's own.  None = none.  Raises as above."""
    from planner.backends.registry import files_of, names_with_files, software

    if text is None:
        return ()
    words, findings = _words(text, where)
    names: list[str] = []
    for word in words:
        try:
            if word != BEST:
                word = _spelled(word, (BEST, *names_with_files()), where)  # noqa: PLW2901
                files_of(software(word), where)
            names.append(word)
        except NotFound as error:
            findings.append(error)
    _raise(findings, where)
    return tuple(names)


def require_files_of_best(emitted: tuple[str, ...], asked: tuple[str, ...], where: str = "--emit") -> None:
    """Raises NotFound where ``best`` is to be written and files can be written for none of those who are asked."""
    from planner.backends.registry import files_of, software

    if BEST not in emitted or ANY in asked:
        return
    refused: list[NotFound] = []
    for name in asked:
        try:
            files_of(software(name), where)
        except NotFound as error:
            refused.append(error)
    if len(refused) == len(asked):
        raise refused[0]


def bare_name(backend: str) -> str:
    """``torchtitan==0.2.2`` -> ``torchtitan``."""
    return backend.partition("==")[0]


def complete_backends(incomplete: str) -> list[str]:
    """Names for the completion of a shell: what stands before the last comma stays."""
    from planner.backends.registry import backends

    before, comma, last = incomplete.rpartition(",")
    known = list(backends()) if comma else [ANY, *backends()]
    return [f"{before}{comma}{name}" for name in known if name.startswith(last)]


def _words(text: str, where: str) -> tuple[list[str], list[MeshwrightError]]:
    """The words between commas, each once, and what is wrong with them."""
    words = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(words):
        hint = "write names with commas between them: megatron,torchtitan"
        return [], [DocumentInvalid("a name is missing", where=where, hint=hint)]
    plain = [bare_name(word) for word in words]
    twice = sorted({name for name in plain if plain.count(name) > 1})
    return words, [DocumentInvalid(f"{name} is named twice", hint="name one release of it") for name in twice]


def _spelled(word: str, known: tuple[str, ...], where: str) -> str:
    """The name as the registry spells it.  Raises NotFound, with the nearest of ``known``."""
    from planner.backends.registry import backends, software

    name = bare_name(word)
    if name not in backends():
        raise NotFound(f"no back-end is called {name!r}", where=where, hint=did_you_mean(name, known))
    return software(word, where).spelled


def _raise(findings: list[MeshwrightError], where: str) -> None:
    """One finding as it is, several as one; names that are not there are NotFound only where nothing else is wrong."""
    if not findings:
        return
    kind = NotFound if all(isinstance(each, NotFound) for each in findings) else DocumentInvalid
    if len(findings) == 1:
        raise kind(findings[0].what, where=where, hint=findings[0].hint)
    lines = [f"{each.what}{f' ({each.hint})' if each.hint else ''}" for each in findings]
    what = "\n".join([f"{len(findings)} problems", *(f"  {line}" for line in lines)])
    raise kind(what, where=where, hint="repair each of them; `meshwright backends list` shows the names")
