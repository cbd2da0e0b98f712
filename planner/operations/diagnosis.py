"""Why a real run differs from a plan, from the logs and traces that it left."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Self

from pydantic import Base64Bytes, Field, model_validator

from planner.answers.diagnose.diagnosis import diagnose
from planner.answers.diagnose.document import Diagnosis
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanRequest
from profiles.document import Document
from profiles.importing.source_file import SourceFile

MOST_FILES = 1000
MOST_RANKS = 512


class RunFile(Document):
    """A file that is sent: a log as text, a trace (best compressed with gzip) as text or in base64."""

    name: str = Field(pattern=r"^[^/\\\x00]{1,200}$", description="what it is called; `rank3.json` says the rank")
    text: str | None = Field(default=None, max_length=20_000_000)
    base64: Base64Bytes | None = Field(default=None, description="the bytes of the file")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give either text or base64")
        return self

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return self.base64 if self.base64 is not None else (self.text or "").encode()


class DiagnosisQuestion(Document):
    """What a run left behind."""

    files: tuple[RunFile, ...] = Field(
        default=(),
        max_length=MOST_RANKS,
        description="training logs and Kineto traces of one or more ranks; other formats are told apart and named",
    )


class DiagnosisRequest(PlanRequest, DiagnosisQuestion):
    """A plan, and what its run left."""


class DiagnosisHere(DiagnosisRequest):
    """The same about files of this machine, which are read where they lie; no service takes it."""

    paths: tuple[str, ...] = Field(min_length=1, max_length=MOST_FILES)


def _work(session: Session, asked: DiagnosisRequest) -> Diagnosis:
    plan, paths = session.plan(asked.plan), asked.paths if isinstance(asked, DiagnosisHere) else ()
    with tempfile.TemporaryDirectory(prefix="meshwright-run-") as folder:
        sent: list[SourceFile] = []
        for number, file in enumerate(asked.files):
            path = Path(folder) / str(number)
            path.write_bytes(file.content)
            sent.append(SourceFile(path, label=file.name, given_name=file.name))
        return diagnose(plan, [*sent, *(SourceFile(Path(path)) for path in paths)])


DIAGNOSIS = Operation(
    name="create_diagnosis",
    summary="Why is the real run slower than the plan?",
    description="Predicted and measured side by side, term by term and rank by rank; what was found, by the seconds"
    " that it costs a step; what no file tells; and the calibration that makes the plan agree.\n\nSend training logs"
    " (Megatron-LM and its relatives, NeMo, nanotron, torchtitan, DeepSpeed, MaxText) and Kineto traces of one or more"
    " ranks.",
    request=DiagnosisRequest,
    answer=Diagnosis,
    work=_work,
    path="/v1/plans/{plan}/diagnosis",
    method="POST",
    served="view",
    # Traces are large and changed flags are estimated: it waits with the searches, so that views stay quick.
    searches=lambda asked: True,
    body=DiagnosisQuestion,
    example={"files": [{"name": "train.log", "text": "iteration 10/ 100 | elapsed time per iteration (ms): 812.0 |"}]},
    reads_files=lambda asked: isinstance(asked, DiagnosisHere),
    command="diagnose",
)
