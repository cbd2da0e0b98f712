"""Runs a command in a forked process as if the interpreter had just started."""

from __future__ import annotations

import contextlib
import os
import random
import runpy
import signal
import sys
import types
from dataclasses import dataclass

from tests.warm_python.imported import Imported


@dataclass(frozen=True, slots=True)
class Request:
    """The words after ``python``, and where they run."""

    words: list[str]
    environment: dict[str, str]
    folder: str
    executable: str

    def command(self) -> tuple[str, list[str]] | None:
        """Kind ("-m", "-c", "script") and its words; None for options of the interpreter that only a start heeds."""
        words = self.words[1:] if self.words[:1] == ["-u"] else self.words
        if len(words) > 1 and words[0] in {"-m", "-c"}:
            return words[0], words[1:]
        return ("script", words) if words and not words[0].startswith("-") else None


def become(request: Request, imported: Imported) -> None:
    """Make this forked process what the interpreter would be: folder, environment, search path, randomness."""
    os.chdir(request.folder)
    environment = imported.completed(request.environment)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.executable = request.executable
    sys.orig_argv = [request.executable, *request.words]
    sys.path[:] = imported.search_path(request.environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


@dataclass(slots=True)
class Ending:
    """The end of the process: threads joined, exit handlers run, streams flushed, but no module torn down.

    Tearing modules down would copy the pages of all that was imported.  ``leave`` is to be the first exit handler that
    is registered: it is called last.
    """

    code: int | None = None
    """As subprocess has it: below 0 is a signal.  None in the server."""

    def of(self, request: Request) -> None:
        """Run the words and note how they ended, with the words that the interpreter would say."""
        try:
            run(request)
            self.code = 0
        except SystemExit as end:
            if isinstance(end.code, int):
                self.code = end.code & 0xFF
            else:
                self.code = int(end.code is not None)
                if end.code is not None:
                    print(end.code, file=sys.stderr)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            self.code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1

    def leave(self) -> None:
        """End now, in a forked process."""
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        if self.code < 0:
            signal.signal(-self.code, signal.SIG_DFL)
            os.kill(os.getpid(), -self.code)
        os._exit(self.code)


def run(request: Request) -> None:
    """Run the words as ``__main__``."""
    kind, words = request.command() or ("script", request.words)
    if kind == "-m":
        sys.path.insert(0, request.folder)
        sys.argv = ["-m", *words[1:]]
        # It is imported already, perhaps; now it is the main program.
        sys.modules.pop(words[0], None)
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = words
    if kind == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec", dont_inherit=True), main.__dict__)
        return
    main.__file__ = os.path.join(request.folder, words[0])
    sys.path.insert(0, os.path.dirname(os.path.realpath(main.__file__)))
    with open(main.__file__, "rb") as script:
        exec(compile(script.read(), main.__file__, "exec", dont_inherit=True), main.__dict__)
