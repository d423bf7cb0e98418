"""The sandbox bank's cards, as a table: the only numbers it knows, and what each does."""

from typing import NamedTuple


class TestCard(NamedTuple):
    """A card number and its fate."""

    number: str
    brand: str
    effect: str
    decline_reason: str = ""
    refund_fails: bool = False

    @property
    def spaced(self) -> str:
        sizes = (4, 6, 5) if self.brand == "American Express" else (4, 4, 4, 4)
        parts, rest = [], self.number
        for size in sizes:
            parts.append(rest[:size])
            rest = rest[size:]
        return " ".join(parts)


CARDS = {
    card.number: card
    for card in (
        TestCard("4242424242424242", "Visa", "approved"),
        TestCard("5555555555554444", "Mastercard", "approved"),
        TestCard("378282246310005", "American Express", "approved"),
        TestCard("4000000000000002", "Visa", "declined", decline_reason="declined"),
        TestCard("4000000000009995", "Visa", "too little money", decline_reason="insufficient_funds"),
        TestCard("4000000000000069", "Visa", "expired card", decline_reason="expired_card"),
        TestCard("4000000000005126", "Visa", "refund fails later", refund_fails=True),
    )
}
