"""Wall-clock times as traces write them, read exactly: no float, no loss of digits."""

import re
from datetime import date

_FORM = re.compile(
    r"(?P<minute>(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[ T](?P<hour>[0-9]{2}):(?P<min>[0-9]{2}):)"
    r"(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<zone>|Z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):?(?P<zone_min>[0-9]{2}))"
)
_MINUTE_LENGTH = len("YYYY-MM-DD hh:mm:")
_PS_DIGITS = 12
_PS_OF_DIGIT: tuple[int, ...] = tuple(10 ** (_PS_DIGITS - digits) for digits in range(_PS_DIGITS + 1))
_PS_PER_MINUTE = 60 * 10**_PS_DIGITS

LAST_ZONE_HOUR = 18
"""No zone was ever further from UTC; those in use go from -12:00 to +14:00."""

RIGHT = "write a time such as 2023-11-16 18:15:46.6805900, with or without a zone (+00:00, Z)"


class WallClock:
    """Turns `YYYY-MM-DD hh:mm:ss[.fraction][zone]` (or a T between) into picoseconds since the year 1.

    One per file: it remembers the minute of the last row, which most rows share, and whether rows carry a
    zone. Times without a zone are differences on the same wall clock. A row costs about 1 us.
    """

    def __init__(self) -> None:
        self._minute = ""
        self._minute_ps = 0
        self._zone: str | None = None

    def read_ps(self, text: str) -> int:
        """Picoseconds since the start of the year 1, exact; ValueError with the reason if it is no time."""
        if text[:_MINUTE_LENGTH] == self._minute:
            tail = text[_MINUTE_LENGTH:]
            zone = self._zone
            if zone:
                tail = tail[: -len(zone)] if tail.endswith(zone) else ""
            second, _, fraction = tail.partition(".")
            digits = len(fraction)
            if len(second) == 2 and second < "60" and digits <= _PS_DIGITS and (digits or second == tail):
                both = second + fraction
                if both.isdigit() and both.isascii():
                    return self._minute_ps + int(both) * _PS_OF_DIGIT[digits]
        return self._read_any_ps(text.strip())

    def _read_any_ps(self, text: str) -> int:
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("not a time" if text else "empty cell")
        hour, minute, second = int(found["hour"]), int(found["min"]), int(found["second"])
        try:
            day = date.fromisoformat(found["date"]).toordinal()
        except ValueError:
            raise ValueError("no such day") from None
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError("no such time of day")
        fraction = found["fraction"] or ""
        if len(fraction) > _PS_DIGITS:
            raise ValueError("finer than a picosecond")
        zone = found["zone"]
        zone_hour, zone_minute = int(found["zone_hour"] or 0), int(found["zone_min"] or 0)
        if zone_hour > LAST_ZONE_HOUR or zone_minute > 59:
            raise ValueError("no such zone")
        if self._zone is not None and bool(zone) != bool(self._zone):
            raise ValueError("has a zone where earlier rows have none" if zone else "has no zone where earlier rows do")
        offset_minutes = 0
        if found["sign"]:
            offset_minutes = zone_hour * 60 + zone_minute
            if found["sign"] == "-":
                offset_minutes = -offset_minutes
        self._zone = zone
        self._minute = found["minute"]
        self._minute_ps = ((day * 24 + hour) * 60 + minute - offset_minutes) * _PS_PER_MINUTE
        return self._minute_ps + int(found["second"] + fraction) * _PS_OF_DIGIT[len(fraction)]
