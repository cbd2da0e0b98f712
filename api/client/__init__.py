"""The typed client of the service: ``from api.client import Client``."""

from api.client.client import Client
from api.client.errors import (
    JobCancelled,
    JobUnfinished,
    ProblemReported,
    ServiceAnswerInvalid,
    ServiceError,
    ServiceUnreachable,
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
]
