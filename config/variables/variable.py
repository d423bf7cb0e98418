"""The description of an environment variable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from config.variables.value_types import ValueType

MISSING = object()
SANDBOXES = ("local", "sandbox")


@dataclass(frozen=True)
class Variable:
    """The table's entry for a variable.

    `default` is its value if the variable is not set or empty; MISSING means that it must be set. `in_` has
    the default for each environment in which it differs. `shown_default` describes the default in words.
    `means` is Markdown for the documentation. `example` is the text in `.env.example`. The value of a secret
    variable is never printed.
    """

    value_type: ValueType[Any]
    means: str
    default: Any = MISSING
    in_: Mapping[str, Any] = field(default_factory=dict)
    shown_default: str = ""
    example: str = ""
    is_secret: bool = False

    def default_of(self, environment: str) -> Any:
        """Return the default value in an environment, or MISSING."""
        return self.in_.get(environment, self.default)


def variable(value_type: ValueType[Any], means: str, **more: Any) -> Any:
    """Return the dataclass field for a variable. `more` are the other fields of `Variable`."""
    return field(metadata={"variable": Variable(value_type, means, **more)})
