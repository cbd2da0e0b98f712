"""The answers of a validator's script: one JSON object a line each way, whatever the checked software prints.

A script gives ``serve`` a generator: it yields the name of every stage before the stage begins, and puts what it learns
into ``facts``.  What it raises is the refusal, at the stage that was named last.  Below stands what scripts feign for
the software that they ask: modules that are not there, and ranks of torch that nobody started.  Nothing here imports
more than the standard library, but for those ranks.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import io
import json
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

Json = dict[str, Any]
Check = Callable[[Json, Json], Iterator[str]]
"""(request, facts) -> the stages, each named before it begins."""
MOST_CHARACTERS = 2000


class Refused(Exception):
    """What a script itself refuses: its text is the whole message."""


def words(error: Exception) -> str:
    """The kind of error and what it says, on one line; what a script refuses in its own words only."""
    said = " ".join(str(error).split())
    return said if isinstance(error, Refused) else f"{type(error).__name__}: {said}"


def usage(printed: str) -> str:
    """What ``argparse`` said at last before it ended the process."""
    return " ".join(printed.rpartition("error: ")[2].split()) or "the argument parser refused"


def serve(
    check: Check,
    prepare: Callable[[Path], None] = lambda overlay: None,
    said: Callable[[Exception], str] = words,
    ended: Callable[[str], str] = usage,
    refusals: type[Exception] = Exception,
) -> None:
    """Answer requests until stdin ends.

    ``prepare`` gets the overlay, which is then first in the search path; ``said`` words a refusal that was raised,
    ``ended`` one that ended the process, by what was printed.  What is not one of ``refusals`` is no answer: the
    process ends with it.
    """
    serve_answers(lambda request: verdict(check, request, said, ended, refusals), prepare)


def serve_answers(answer: Callable[[Json], Json], prepare: Callable[[Path], None] = lambda overlay: None) -> None:
    """The same for a script that makes its whole answers itself."""
    # In place of the script's folder, whose files are named like packages.
    sys.path[0] = sys.argv[1]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare(Path(sys.argv[1]))
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line)), default=str) + "\n")
        answers.flush()


def verdict(
    check: Check,
    request: Json,
    said: Callable[[Exception], str] = words,
    ended: Callable[[str], str] = usage,
    refusals: type[Exception] = Exception,
) -> Json:
    """Every stage until one refuses."""
    facts: Json = {}
    stage, noise = "", io.StringIO()
    try:
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            for begun in check(request, facts):
                stage = begun
    except SystemExit:
        message = ended(noise.getvalue())
    except refusals as error:  # whatever the checked software raises is its answer
        message = said(error)
    else:
        return {"accepted": True, "stage": "ok", "message": "", "facts": facts}
    return {"accepted": False, "stage": stage, "message": message[:MOST_CHARACTERS], "facts": facts}


def in_child(answer: Callable[[], Json], name: str) -> Json:
    """The answer of a forked child, for software that keeps its state in module variables; one that dies answers too.

    ``name``: what is said to have ended the process.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            text = json.dumps(answer(), default=str)
        except BaseException as error:
            text = json.dumps({"accepted": False, "stage": "worker", "message": f"{type(error).__name__}: {error}"})
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return {"accepted": False, "stage": "process", "message": f"{name} ended its process, status {status}"}
    return dict(json.loads(text))


@contextlib.contextmanager
def feigned_ranks(world_size: int, rank: int = 0) -> Iterator[None]:
    """A process group of torch of any size in this process, as one rank sees it; nothing is sent."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


class NamedAll(type):
    """The kind of a class that has every attribute, each such a class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return NamedAll(name, (), {})


class _Nothing(types.ModuleType):
    """A module that has every name: classes of ``kind`` for capital letters, mocks for others."""

    def __init__(self, name: str, kind: type) -> None:
        super().__init__(name)
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "99.0"
        if name.startswith("__"):
            raise AttributeError(name)
        made: Any = self._kind(name, (), {}) if name[:1].isupper() else mock.MagicMock(name=name)
        setattr(self, name, made)
        return made


class FeignedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of nothing for the given names and everything below them, for what is imported and decides no check.

    ``kind``: of their classes; with ``NamedAll`` these have every attribute, but no other metaclass beside them.
    """

    def __init__(self, *names: str, kind: type = type) -> None:
        self.names = names
        self.kind = kind
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A spec for a feigned module or anything inside one."""
        feigned = any(name == each or name.startswith(f"{each}.") for each in self.names)
        return ModuleSpec(name, self, is_package=True) if feigned else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """An empty module with every name."""
        return _Nothing(spec.name, self.kind)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""
