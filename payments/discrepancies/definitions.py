"""The types in the table of discrepancy kinds: a kind with its texts, and the actions that operators can take."""

from dataclasses import dataclass

RUNBOOK = "docs/operate.md"
BROKEN = "broken-ledger"  # its section about breaches that `manage.py prove_ledger` finds


@dataclass(frozen=True)
class Remedy:
    """An action for operators: its name in the admin, the label of its button, and the page with the button."""

    action: str
    words: str
    page: str


SEND_AGAIN = Remedy("send_again", "Send again", "operation")
SETTLE_OUTSIDE = Remedy("settle_outside", "Settled outside", "operation")
GIVE_UP = Remedy("give_up", "Give up the operation", "operation")
CLOSE = Remedy("close", "Close with a note", "discrepancy")
ADD_NOTE = Remedy("add_note", "Add a note", "discrepancy")  # the discrepancy stays open
REMEDIES = (SEND_AGAIN, SETTLE_OUTSIDE, GIVE_UP, CLOSE, ADD_NOTE)  # in the order of their buttons


@dataclass(frozen=True)
class DiscrepancyKind:
    """A kind of discrepancy. Its `sentence` is also used as a title, so it has no full stop.

    `runbook` is the anchor of a heading in docs/operate.md. `remedies` are the actions with which an operator can
    resolve the discrepancy. All of them are on one page. A discrepancy without remedies closes automatically.
    """

    name: str
    sentence: str
    what_to_do: str
    runbook: str
    remedies: tuple[Remedy, ...] = (CLOSE,)

    @property
    def remedy(self) -> str:
        """Return the labels of the buttons that resolve the discrepancy, and the page with the buttons."""
        if not self.remedies:
            return "It closes automatically"
        return f"{' or '.join(verb.words for verb in self.remedies)}, on the {self.remedies[0].page}’s page"

    @classmethod
    def of_ledger(cls, name: str, sentence: str) -> "DiscrepancyKind":
        """Return a kind for breaches that `manage.py prove_ledger` finds."""
        what_to_do = (
            "Run `manage.py prove_ledger`, and find what moved the money or changed the rows. If it continues, suspend"
            " the merchant. Then close the discrepancy."
        )
        return cls(f"ledger_{name}", sentence, what_to_do, BROKEN)

    @property
    def runbook_page(self) -> str:
        """Return the address of the runbook's section about this kind."""
        return f"{RUNBOOK}#{self.runbook}"
