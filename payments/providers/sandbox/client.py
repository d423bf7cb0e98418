"""The client for the sandbox bank. The bank runs in the same process.

Injected faults can cause errors or missing answers.
"""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings

from config.lib import connection_release
from payments.provider import Outcome, ProviderUnreachable, Verdict
from payments.providers.sandbox import (
    bank,
    books,
    disputing,
    fault_injection,
    journal,
    notifications,
    settling,
)
from payments.providers.sandbox.models import Fault

HANG_SECONDS = 5.0  # after this, a request counts as not answered
BANK_CALLS: dict[str, Callable[..., Any]] = {
    "open_session": bank.open_session,
    "tokenise": bank.tokenise,
    "answer_challenge": bank.answer_challenge,
    "act_in_dashboard": bank.act_in_dashboard,
    "changed": books.changed_payments,
    "decide": disputing.decide_dispute,
    "dispute": disputing.dispute_payment,
    "advance": settling.advance,
    "end_refund": settling.end_refund,
    "movements": books.read_books,
    "payments": journal.payments_since,
    "set_fault": fault_injection.set_fault,
    "tell": notifications.due_notifications,
}


def call_for_outcome(verb: str, /, *, patience: float, **arguments: Any) -> Outcome:
    """Call the bank and return the outcome. Injected faults can change the call or make it fail.

    Raises fault_injection.CallFailed. The bank might have carried out the call nevertheless.
    """
    try:
        return fault_injection.call_with_faults(verb, arguments)
    except fault_injection.CallFailed as broken:
        if broken.mode in fault_injection.ERROR_MODES:
            return Outcome(Verdict.UNKNOWN)
        if broken.mode in (Fault.Mode.HANG, Fault.Mode.DONE_THEN_HANG):
            connection_release.release()
            time.sleep(patience)
        raise


def call_bank(verb: str, /, **arguments: Any) -> Any:
    """Make one of the calls in BANK_CALLS. If a fault is injected, raises ProviderUnreachable.

    Raises bank.UnknownCard.
    """
    try:
        return BANK_CALLS[verb](**arguments)
    except fault_injection.CallFailed as broken:
        if broken.mode == Fault.Mode.HANG:
            connection_release.release()
            time.sleep(HANG_SECONDS)
        raise ProviderUnreachable from broken


def bank_address() -> str:
    """Return the base address of the bank's own pages."""
    return settings.BASE_URL
