"""Reads the environment variables. It reports all problems together, one sentence each."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.variables import checks
from config.variables.table import OTHERS, TABLE, Variables
from config.variables.variable import MISSING

MISSPELT = 0.86  # from this similarity (difflib) on, a name counts as a misspelt form of another name
LONGEST_NAME = 40


class Refused(ImproperlyConfigured):
    """Raised if the service must not start. `problems` has one sentence for each problem."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def read(environ: Mapping[str, str]) -> Variables:
    """Return the values of the variables. Raises Refused with all problems. Rule environment.variables."""
    environment = environ.get("ENVIRONMENT", "")
    if environment not in {"local", "sandbox", "production"}:
        words = TABLE["ENVIRONMENT"].value_type.words
        raise Refused(
            [_not_valid("ENVIRONMENT", words, environment) if environment else _not_set("ENVIRONMENT")]
        )
    values: dict[str, Any] = {}
    problems = []
    for name in TABLE:
        try:
            values[name] = _read_one(name, environ.get(name, "").strip(), environment)
        except ValueError as error:
            problems.append(str(error))
    if environment != "local":
        problems += misspelt_names(environ)
    problems += checks.find_problems(values)
    if problems:
        raise Refused(problems)
    return Variables(**values)


def misspelt_names(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable whose name is similar to one of ours but not equal to it."""
    unknown = (name for name in sorted(environ) if name not in TABLE and name not in OTHERS)
    pairs = (
        (name, get_close_matches(name, TABLE, 1, MISSPELT)) for name in unknown if len(name) <= LONGEST_NAME
    )
    return [
        f"{name} is not a variable of the service. Did you mean {near[0]}?" for name, near in pairs if near
    ]


def _read_one(name: str, raw: str, environment: str) -> Any:
    described = TABLE[name]
    if not raw:
        default = described.default_of(environment)
        if default is MISSING:
            raise ValueError(_not_set(name))
        return default
    try:
        return described.value_type.parse(raw)
    except ValueError:
        raise ValueError(
            _not_valid(name, described.value_type.words, "" if described.is_secret else raw)
        ) from None


def _not_set(name: str) -> str:
    return f"Set {name}: it must be {TABLE[name].value_type.words}."


def _not_valid(name: str, words: str, raw: str) -> str:
    return f"{name} must be {words}" + (f", not {raw[:60]!r}." if raw else ".")
