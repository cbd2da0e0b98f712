"""The typed client of the service: ``from api.client import Client``."""

from api.client.client import Client
from api.client.errors import (
    JobCancelled,
    JobUnfinished,
    ProblemReported,
    ServiceAnswerInvalid,
    ServiceError,
    ServiceUnreachable,
    SweepUnfinished,
)
from api.client.patience import Patience

__all__ = [
    "Client",
    "JobCancelled",
    "JobUnfinished",
    "Patience",
    "ProblemReported",
    "ServiceAnswerInvalid",
    "ServiceError",
    "ServiceUnreachable",
    "SweepUnfinished",
]
