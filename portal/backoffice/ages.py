"""Ages in words."""

from datetime import timedelta

_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def in_words(age: timedelta) -> str:
    """Return an age in its largest whole unit: "12 seconds", "1 hour", "3 days"."""
    seconds = max(0, int(age.total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            number = seconds // length
            return f"{number} {unit}" + ("" if number == 1 else "s")
    return "less than a second"
