"""
What a collector answers, and what that means for the records it was sent.
"""

from __future__ import annotations

import time
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceResponse,
)
from requests import HTTPError, ReadTimeout, Response, Session


_MOST_BYTES: Final = 64 << 10


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
        Do as every session, but read no more than an answer has to say.

        The timeout is for all of it, where elsewhere it is for each byte.
        """
        options["stream"] = True
        # Else REQUESTS_CA_BUNDLE would count more than the SDK's own variable.
        options.setdefault("verify", self.verify)
        begun = time.monotonic()
        try:
            answer = super().request(*args, **options)
            _read(answer, begun + options["timeout"])
        except Exception as error:
            self.answer = error
            raise
        self.answer = answer
        return answer

    def get_redirect_target(self, _: Response) -> None:
        """
        Follow no redirection: it would lose what was sent.
        """


def _read(answer: Response, deadline: float) -> None:
    """
    Read the body of *answer*, or as much of it as there is room for.

    Raises:
        RequestException: If it does not end in time, or breaks off.
    """
    body = bytearray()
    try:
        # By single bytes: more would be waited for, however slowly they come.
        for each in answer.iter_content(1):
            body += each
            if len(body) >= _MOST_BYTES:
                break
            if time.monotonic() >= deadline:
                raise ReadTimeout("the answer did not end in time")
    finally:
        # The connection is used again only if nothing is left in it.
        answer.close()
    # There is no public way to say what was read.
    answer._content = bytes(body)  # noqa: SLF001
    answer._content_consumed = True  # noqa: SLF001


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
