"""`make protocols`: writes docs/protocols.md from the protocols and their models."""

import textwrap
from pathlib import Path

from tests.model.protocols import PROTOCOLS
from tests.model.protocols.protocol import Protocol
from tests.model.search import explore
from tests.model.stories import tell

PAGE = Path(__file__).parents[3] / "docs" / "protocols.md"
HEAD = """\
# Protocols

Each section of this page shows how several processes, or the service and another party, agree on something although
messages are lost and processes sleep. `make models` checks each protocol: it visits every state that the protocol can
reach, and then leaves out one rule at a time. For each missing rule, it finds the shortest run in which a promise is
broken. `make protocols` writes this page from the models in `tests/model/protocols`. A test next to each model takes
runs of the model with the real functions, and compares the rows after each step.

[money.md](money.md#the-model) has the same for money after the capture.
"""


def render() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *(_render_protocol(protocol) for protocol in PROTOCOLS)])


def _render_protocol(protocol: Protocol) -> str:
    stories = [f"```\n{tell(each, explore(each.model))}\n```\n" for each in protocol.variants]
    return "\n".join(
        [
            f"## {protocol.title}\n",
            f"{_wrap(protocol.summary)}\n",
            f"```\n{protocol.drawing.strip(chr(10))}\n```\n",
            f"{_wrap('The code is in ' + _join([f'`{path}`' for path in protocol.code]))}.\n",
            "In every state:\n",
            *(_wrap(f"- {promise}", indent="  ") for promise in protocol.invariants),
            "\nEach rule is needed:\n",
            *stories,
        ]
    )


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


if __name__ == "__main__":
    PAGE.write_text(render())
