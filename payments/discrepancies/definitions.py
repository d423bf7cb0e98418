"""The types in the table of discrepancy kinds: a kind with its words, and the operators' verbs for it."""

from dataclasses import dataclass

RUNBOOK = "docs/operate.md"


@dataclass(frozen=True)
class Remedy:
    """A verb of the operators: its action in the admin, the words of its button, and the page that has it."""

    action: str
    words: str
    page: str


SEND_AGAIN = Remedy("send_again", "Send again", "operation")
SETTLE_OUTSIDE = Remedy("settle_outside", "Settled outside", "operation")
GIVE_UP = Remedy("give_up", "Give up the operation", "operation")
CLOSE = Remedy("close", "Close with a note", "discrepancy")
REMEDIES = (SEND_AGAIN, SETTLE_OUTSIDE, GIVE_UP, CLOSE)  # in the order of their buttons


@dataclass(frozen=True)
class DiscrepancyKind:
    """A kind of discrepancy. Its sentence is also a title and has no full stop.

    `runbook` is the anchor of a heading in docs/operate.md. `remedies` are the verbs that end it, all on one
    page. A kind without a verb closes automatically.
    """

    name: str
    sentence: str
    what_to_do: str
    runbook: str
    remedies: tuple[Remedy, ...] = (CLOSE,)

    @property
    def remedy(self) -> str:
        """Return the buttons of its verbs and the page that has them."""
        if not self.remedies:
            return "None: it closes automatically"
        return f"{' or '.join(verb.words for verb in self.remedies)}, on the {self.remedies[0].page}’s page"

    @property
    def runbook_page(self) -> str:
        """Return the place in the runbook that says more."""
        return f"{RUNBOOK}#{self.runbook}"
