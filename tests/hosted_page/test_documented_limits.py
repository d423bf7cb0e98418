"""The limits in the code must have the values that docs/contract.md states.

All other tests take these values from the code.
"""

from datetime import timedelta

import pytest

from checkout.group import share_changes, share_claims
from checkout.split import share_rows, split_amounts
from config.lib.quota import Limit
from hosted_page import remembered_browsers
from hosted_page.group import share_claim_limits
from hosted_page.sms import invitations, lead_notifications, limits
from hosted_page.steps import codes, declines

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("actual", "documented"),
    [
        pytest.param(share_claim_limits.PER_ADDRESS, Limit(30, HOUR), id="takes an address"),
        pytest.param(share_claims.AT_FIRST, timedelta(minutes=3), id="a take until signed in"),
        pytest.param(share_claims.SIGNED_IN, timedelta(minutes=15), id="a take once signed in"),
        pytest.param(lead_notifications.PER_CHECKOUT, 4, id="texts to a lead"),
        pytest.param(remembered_browsers.MAX_BROWSERS, 5, id="browsers a number"),
        pytest.param(remembered_browsers.LIFE, timedelta(days=30), id="remembered"),
        pytest.param(limits.CODE_INTERVAL, timedelta(seconds=30), id="between two codes"),
        pytest.param(limits.PER_NUMBER, (Limit(5, HOUR), Limit(10, DAY)), id="codes a number"),
        pytest.param(limits.PER_ADDRESS, Limit(300, HOUR), id="codes an address"),
        pytest.param(limits.INVITATIONS, 20, id="invitations of an order"),
        pytest.param(invitations.REMINDER_INTERVAL, DAY, id="between two reminders"),
        pytest.param(codes.MAX_TRIES, 5, id="tries a code"),
        pytest.param(codes.CODE_LIFE, timedelta(minutes=10), id="life of a code"),
        pytest.param(
            (declines.PER_ORDER, declines.PER_PHONE, declines.PER_ADDRESS),
            (Limit(5, HOUR), Limit(10, DAY), Limit(30, HOUR)),
            id="declined cards",
        ),
        pytest.param(split_amounts.MAX_PEOPLE, 20, id="people of a split"),
        pytest.param(share_rows.MAX_REPLACED, 100, id="ended shares of an order"),
        pytest.param(share_changes.MAX_REPLACED_LINKS, 20, id="replaced links of a share"),
    ],
)
def test_each_limit_has_its_documented_value(actual: object, documented: object) -> None:
    assert actual == documented
