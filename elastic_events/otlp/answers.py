"""
What a collector answers, and what that means for the records it was sent.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceResponse,
)
from requests import HTTPError, Response, Session


class NotAccepted(Exception):  # noqa: N818
    """
    The collector did not take a batch.
    """


class Rejected(Exception):  # noqa: N818
    """
    The collector took a batch, but not *count* of its records.
    """

    def __init__(self, count: int, text: str) -> None:
        super().__init__(f"the collector rejected {count} records: {text}")
        self.count = count


class RememberingSession(Session):
    """
    Connections that remember how the last request ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer: Response | Exception | None = None

    def request(self, *args: Any, **options: Any) -> Response:
        """
        Do as every session; a redirection would lose what was sent.
        """
        options["allow_redirects"] = False
        try:
            self.answer = super().request(*args, **options)
        except Exception as error:
            self.answer = error
            raise
        return self.answer


def check(answer: Response) -> None:
    """
    Raise what the collector said against the records.

    Raises:
        HTTPError: If it took none of them.

        Rejected: If it did not take all.
    """
    if not 200 <= answer.status_code < 300:
        raise HTTPError(f"HTTP {answer.status_code} {answer.reason}")
    if "protobuf" not in answer.headers.get("Content-Type", ""):
        return
    try:
        said = ExportLogsServiceResponse.FromString(answer.content)
    except Exception:
        # It was taken, whatever else was said.
        return
    partial = said.partial_success
    if partial.rejected_log_records > 0:
        raise Rejected(partial.rejected_log_records, partial.error_message)
