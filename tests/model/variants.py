"""Variants of a model: each is the same model with one rule left out."""

from dataclasses import dataclass
from typing import Any

from tests.model.search import Model


@dataclass(frozen=True)
class Variant:
    """A model in which a rule is left out, with a description of this rule."""

    model: Model[Any]
    design: Model[Any]  # the same model with the rule
    without: str
    rule: str
