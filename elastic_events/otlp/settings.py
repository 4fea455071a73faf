"""
What a destination and the environment say about where and how to send.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit


_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_LOGS_PATH: Final = "/v1/logs"
_DEFAULT_TIMEOUT: Final = 10.0
_SHORTEST: Final = 0.001
_LONGEST: Final = 999_999
_COMPRESSIONS: Final = ("none", "gzip", "deflate")
_FILES: Final = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")


class Batching(NamedTuple):
    """
    When a batch is made of the lines that wait.
    """

    queue_size: int
    """How many lines may wait."""

    batch_size: int
    """How many lines a batch has at most."""

    delay: int
    """How many milliseconds there are between batches that are not full."""

    timeout: int
    """What the SDK asks for, and does not use yet; milliseconds."""

    is_metered: bool
    """Whether the SDK keeps metrics of what it does."""


def endpoint_of(address: str) -> str:
    """
    Return the URL that log records are sent to.

    Args:
        address:
            A collector's, as ``http://HOST:4318``. Empty, it is what
            OpenTelemetry's environment variables say.

    Raises:
        ValueError: If it is no URL of HTTP.
    """
    if not address:
        exact = os.environ.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
        address = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        if exact or address:
            _check_protocol()
        if exact:
            return _checked(exact)
    url = _checked(address or _DEFAULT_ENDPOINT).rstrip("/")
    return url if url.endswith(_LOGS_PATH) else url + _LOGS_PATH


def _check_protocol() -> None:
    """
    Check that what listens at the environment's endpoint speaks HTTP.

    Raises:
        ValueError: If it speaks gRPC.
    """
    name, said = _of_exporter("PROTOCOL")
    if said == "grpc":
        raise ValueError(
            f"the environment has {name}='grpc', which is not spoken"
            " here: name the address for HTTP, otlp:http://HOST:4318"
        )


def _of_exporter(what: str) -> tuple[str, str]:
    """
    Return the variable that says *what* holds for logs, and what it says.
    """
    of_logs = f"OTEL_EXPORTER_OTLP_LOGS_{what}"
    of_all = f"OTEL_EXPORTER_OTLP_{what}"
    name = of_logs if os.environ.get(of_logs) else of_all
    return name, os.environ.get(name, "")


def _checked(url: str) -> str:
    """
    Return *url* if records can be sent there.

    Raises:
        ValueError: If they cannot.
    """
    parts = urlsplit(url)
    is_whole = parts.scheme in {"http", "https"} and parts.hostname
    if not is_whole or any(map(str.isspace, url)):
        raise ValueError(
            f"{url!r} is no collector: expected otlp:http://HOST:4318, or"
            " otlp: alone for what OTEL_EXPORTER_OTLP_ENDPOINT says"
        )
    if parts.username is not None or parts.fragment:
        # The text is not shown: it may hold a secret.
        raise ValueError(
            "the URL of a collector holds a user or a fragment: credentials"
            " belong into OTEL_EXPORTER_OTLP_HEADERS"
        )
    _ = parts.port
    return url


def is_switched_off() -> bool:
    """
    Tell whether the environment switches OpenTelemetry off.
    """
    return _is_true("OTEL_SDK_DISABLED")


def _is_true(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() == "true"


def batching(size: int | None) -> Batching:
    """
    Return what the environment says about batches.

    Args:
        size: How many lines may wait, if it is not the environment's to say.

    Raises:
        ValueError: If it says something that cannot be.
    """
    size = size or _whole_number("OTEL_BLRP_MAX_QUEUE_SIZE", 2048)
    batch_size = _whole_number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512)
    return Batching(
        size,
        min(batch_size, size),
        _whole_number("OTEL_BLRP_SCHEDULE_DELAY", 1000),
        _whole_number("OTEL_BLRP_EXPORT_TIMEOUT", 30_000),
        _is_true("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"),
    )


def _whole_number(name: str, default: int) -> int:
    """
    Return what the environment says, a whole number from 1 to 999999999.

    Raises:
        ValueError: If it says something else.
    """
    said = os.environ.get(name) or str(default)
    # As many digits as an option may have: a thread waits no longer.
    if not re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*", said):
        raise ValueError(
            f"the environment has {name}={said!r}: expected a whole number"
            " from 1 to 999999999"
        )
    return int(said)


def timeout() -> float:
    """
    Return how many seconds a batch may take, as the environment says.

    Raises:
        ValueError: If it says something else than a number that can be.
    """
    name, said = _of_exporter("TIMEOUT")
    if not said:
        return _DEFAULT_TIMEOUT
    with contextlib.suppress(ValueError):
        if _SHORTEST <= float(said) <= _LONGEST:
            return float(said)
    raise ValueError(
        f"the environment has {name}={said!r}: expected seconds, a"
        f" number from {_SHORTEST} to {_LONGEST}"
    )


def check_transport() -> None:
    """
    Check what the environment says about the connection.

    Raises:
        ValueError: If it says something that the SDK would leave out, or find
            out with the first batch.
    """
    name, said = _of_exporter("COMPRESSION")
    if said and said.strip().lower() not in _COMPRESSIONS:
        raise ValueError(
            f"the environment has {name}={said!r}: expected one of"
            f" {', '.join(_COMPRESSIONS)}"
        )
    for what in _FILES:
        name, said = _of_exporter(what)
        if said and not os.access(said, os.R_OK):
            raise ValueError(
                f"the environment has {name}={said!r}: expected the name of a"
                " file that can be read"
            )
