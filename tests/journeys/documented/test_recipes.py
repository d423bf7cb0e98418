"""The tests follow each recipe in the documentation, step by step, on the running service."""

import re
from typing import Any

import pytest

from payments.providers.sandbox.cards import CARDS
from portal.developer_docs import recipes
from portal.developer_docs.recipes import RECIPES, Recipe, Step
from tests import factories
from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver

pytestmark = [pytest.mark.journey, pytest.mark.long]
# Recipes that wait some seconds for the bank or for the next delivery attempt.
TAKE_LONG = {
    f"recipe-{name}"
    for name in (
        *("lost-answer", "no-capture", "slow-bank", "slow-release", "asynchronous-capture"),
        *("refund-fails", "refund-returns", "dispute", "dispute-lost", "endpoint-down"),
    )
}
RUN = [
    pytest.param(recipe, id=recipe.anchor, marks=[pytest.mark.long] if recipe.anchor in TAKE_LONG else [])
    for recipe in RECIPES
]


def followed(merchant: Merchant, checkout: str, step: Step) -> None:
    """Send the call of a recipe's step. Fail unless the response is as documented.

    If the recipe says that the step waits, repeat the call for up to 25 s.
    """

    def answered() -> bool:
        call = recipes.CALLS[step.call]
        path = call.path.format(checkout_uuid=checkout).removeprefix("/api/")
        answer = merchant.call(call.method, path, step.body)
        body: Any = answer.json() if answer.content else {}
        content = body.get("data", body.get("error", {}))
        said = (answer.status_code, {fact: at(content, fact) for fact in step.facts})
        if not step.waits:
            assert said == (step.status, step.facts), (step.call, answer.text)
        return said == (step.status, step.facts)

    polling.until(answered, within=25, what=f"{step.call}: {step.expected_text}")


def at(content: Any, path: str) -> Any:
    """Return the value at a path such as `refunds[0].status`, or None if there is no value."""
    for name in re.findall(r"\w+", path):
        try:
            content = content[int(name) if isinstance(content, list) else name]
        except (LookupError, TypeError):
            return None
    return content


@pytest.mark.rule("docs.recipes")
@pytest.mark.parametrize("recipe", RUN)
def test_each_recipe_works_as_documented(recipe: Recipe, subscribed: Merchant, receiver: Receiver) -> None:
    if recipe.anchor == "recipe-endpoint-down":
        receiver.answer_with(500)
    # The test does not pass the new secret to the receiver, so the receiver must accept every signature.
    if recipe.anchor == "recipe-rotation":
        receiver.answer = lambda arrival: 200
    item = factories.item(quantity=1, unit_price=2250)
    checkout = subscribed.create(total_amount=2250, items=[item])
    for step in recipe.steps:
        followed(subscribed, checkout, step)
    receiver.refused.clear()


def test_every_test_card_has_a_recipe() -> None:
    approved = {card.number for card in CARDS.values() if card.effect == "approved"}
    assert {recipe.card for recipe in RECIPES if recipe.card} | approved == set(CARDS)
