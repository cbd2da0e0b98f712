"""The messages between a process that waits for an answer and one that computes it.

Each message is one line of JSON, and behind it as many bytes of content as the line says:

in    {"task": name, "payload": {...}, "seconds": s or null}     compute this; nobody waits longer than that
      {"stop": true}                                             end the running search with its best plan
out   ready                what a task needs is imported
      progress             JSON, a ``JobProgress``
      done, wall_s         the answer, and the seconds that it took
      refused              JSON, ``ProblemDetails``: an error of the question, or the memory limit
      late                 the time was over
      bug                  what failed, in words; the rest is on the standard error

Lines, so that a byte that does not belong there is found at once, and nobody waits for the rest of it.
"""

from __future__ import annotations

import json
from typing import IO, Literal, NamedTuple

Kind = Literal["ready", "progress", "done", "refused", "late", "bug", "died"]


class Message(NamedTuple):
    """What a computing process says; ``died``: what is heard of one that says nothing more."""

    kind: Kind
    content: bytes = b""
    wall_s: float = 0.0


def write_message(answers: IO[bytes], message: Message) -> None:
    """Send it at once."""
    head = {"kind": message.kind, "size": len(message.content), "wall_s": message.wall_s}
    answers.write(json.dumps(head).encode() + b"\n" + message.content)
    answers.flush()


def read_message(answers: IO[bytes]) -> Message:
    """The next message; ``died`` where the other end has gone, perhaps while it wrote, or writes something else."""
    line = answers.readline()
    try:
        head = json.loads(line) if line.endswith(b"\n") else {}
        content = answers.read(head["size"])
        return Message(head["kind"], content, head["wall_s"]) if len(content) == head["size"] else Message("died")
    except (ValueError, KeyError, TypeError):
        return Message("died")
