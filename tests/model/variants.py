"""A variant of a model: the same model with one rule left out."""

from dataclasses import dataclass
from typing import Any

from tests.model.search import Model


@dataclass(frozen=True)
class Variant:
    """A model that leaves out a rule, with a description of the rule."""

    model: Model[Any]
    design: Model[Any]  # the same model with the rule
    without: str
    rule: str
