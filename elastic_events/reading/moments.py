"""
Moments as people write them, and as lines state them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Final


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND: Final = timedelta(milliseconds=1)
_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_RELATIVE: Final = re.compile(r"-?((?:[0-9]{1,9}[smhdw])+)", re.ASCII)
_STEP: Final = re.compile(r"([0-9]+)([smhdw])")
_NUMBER: Final = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,9})?")
_ISO: Final = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"
    r"(?:[.,](?P<fraction>[0-9]{1,9}))?"
    r" ?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
# A second in the year 5138 is a millisecond in 1973, and so on.
_SMALLEST_MILLISECOND: Final = 10**11
_SMALLEST_MICROSECOND: Final = 10**14
_SMALLEST_NANOSECOND: Final = 10**17

FORMS: Final = (
    "2024-02-29, 2024-02-29T12:34:56Z, 1709210096 (epoch), -15m, -2h30m, -3d,"
    " now, today or yesterday"
)
"""What `moment` takes."""


def moment(text: str, now: datetime | None = None) -> int:
    """
    Return the moment that *text* names, in milliseconds since the epoch.

    A date is its midnight, and without a zone the time is local. A number is
    seconds since the epoch, from 10¹¹ on milliseconds, from 10¹⁴ on
    microseconds, from 10¹⁷ on nanoseconds.

    Args:
        text: One of `FORMS`.

        now: What relative ones are relative to. (default: now)

    Raises:
        ValueError: If *text* is none of them.
    """
    wanted = text.strip()
    for form in _named, _relative, _number, _iso:
        try:
            found = form(wanted, now)
        except (ValueError, OverflowError, OSError) as error:
            raise ValueError(f"no such time {text!r}: {error}") from error
        if found is not None:
            return found
    raise ValueError(f"unknown time {text!r}: expected {FORMS}")


def instant(milliseconds: float) -> str:
    """
    Return the moment as the lines' ``time`` has it: RFC 3339, UTC.

    What is outside the years 1 to 9999 stays a number.
    """
    try:
        when = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    text = when.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z"


def _named(text: str, now: datetime | None) -> int | None:
    days = {"today": 0, "yesterday": 1}.get(text.lower())
    if days is not None:
        # Not by hours: a day may have 23 of them.
        date = _local(now) - timedelta(days=days)
        midnight = date.replace(hour=0, minute=0, second=0, microsecond=0)
        return _milliseconds(midnight.astimezone())
    return _milliseconds(_now(now)) if text.lower() == "now" else None


def _relative(text: str, now: datetime | None) -> int | None:
    found = _RELATIVE.fullmatch(text)
    if found is None:
        return None
    back = timedelta()
    for number, unit in _STEP.findall(found[1]):
        back += int(number) * _UNITS[unit]
    return _milliseconds(_now(now) - back)


def _number(text: str, _: datetime | None) -> int | None:
    if _NUMBER.fullmatch(text) is None:
        return None
    whole, _point, fraction = text.partition(".")
    number = int(whole)
    if number >= _SMALLEST_NANOSECOND:
        return number // 10**6
    if number >= _SMALLEST_MICROSECOND:
        return number // 10**3
    if number >= _SMALLEST_MILLISECOND:
        return number
    return number * 1000 + _thousandths(fraction)


def _iso(text: str, _: datetime | None) -> int | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    when = datetime.fromisoformat(
        f"{found['date']}T{found['time'] or '00:00'}"
    )
    zone = found["zone"]
    # Without a zone it is taken for local.
    aware = when.astimezone() if not zone else _in_zone(when, zone.upper())
    return _milliseconds(aware) + _thousandths(found["fraction"] or "")


def _in_zone(when: datetime, zone: str) -> datetime:
    if zone == "Z":
        return when.replace(tzinfo=timezone.utc)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return when.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))


def _now(now: datetime | None) -> datetime:
    return datetime.now(timezone.utc) if now is None else now


def _local(now: datetime | None) -> datetime:
    return _now(now).astimezone().replace(tzinfo=None)


def _milliseconds(when: datetime) -> int:
    return (when - _EPOCH) // _MILLISECOND


def _thousandths(fraction: str) -> int:
    return int(fraction[:3].ljust(3, "0"))
