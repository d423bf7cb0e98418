"""Checks the conditions that must hold at the end of a run. A condition that does not hold is a violation."""

from collections import Counter
from typing import Any

from tests.chaos import histories
from tests.chaos.stories import Story
from tests.chaos.world import World
from tests.journeys.receiver import Receiver

# Two kinds of operations are allowed to be open at the end of a run: refunds under whose key the provider has
# stored a server error, and authorizations that never arrived. The provider could still carry them out. The
# service therefore looks them up for a day or two without a new key, so that they cannot happen twice.
RESTLESS = """
WITH open AS (
  SELECT o.kind, o.state, o.reason, o.attempts, o.next_attempt_at, p.checkout_uuid, (
    o.state = 'unknown' AND o.attempts > 4 AND (
      (o.kind = 'refund' AND o.id = ANY(%s::uuid[]))
      OR (o.kind = 'authorize' AND p.abandoned_at IS NOT NULL)
    )
  ) AS is_followed_for_a_day
  FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
  WHERE p.merchant_id = %s AND o.ended_at IS NULL
)
SELECT concat_ws(' ', checkout_uuid, kind, state, reason, attempts, 'attempts, next at', next_attempt_at)
  FROM open WHERE NOT is_followed_for_a_day AND state <> 'needs_action' -- which waits for the payer
UNION ALL
SELECT concat(id, ' is ', status) FROM checkout_checkout
  WHERE merchant_id = %s AND (status = 'authorized' OR status = 'refunding'
    AND id NOT IN (SELECT checkout_uuid FROM open WHERE kind = 'refund' AND is_followed_for_a_day))
UNION ALL
SELECT 'delivery overdue' FROM webhooks_delivery
  WHERE merchant_id = %s AND status = 'pending'
    AND CASE WHEN lease_token IS NULL THEN next_attempt_at < clock_timestamp() + interval '5 seconds'
             ELSE lease_until < clock_timestamp() END
"""
CHECKOUTS = """
SELECT id::text, status, amount, authorized_at IS NOT NULL FROM checkout_checkout WHERE merchant_id = %s
"""
EVENTS = """
SELECT e.checkout_uuid::text, e.type, e.id::text, d.status FROM webhooks_event e
JOIN webhooks_delivery d ON d.event_id = e.id WHERE e.merchant_id = %s
"""
# BOOKS returns the net amounts that the cards of an order have paid, according to our own books. IN_DOUBT
# returns the amounts of refunds that are looked up for a day: they might already have reached the cards, or
# might still reach them.
BOOKS = """
SELECT m.checkout_uuid::text, sum(m.amount)::bigint
FROM payments_movement m JOIN payments_payment p ON p.id = m.payment_id WHERE p.merchant_id = %s
GROUP BY 1
"""
IN_DOUBT = """
SELECT p.checkout_uuid::text, sum(o.amount)::bigint
FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE p.merchant_id = %s AND o.kind = 'refund' AND o.ended_at IS NULL
  AND o.state = 'unknown' AND o.attempts > 4 AND o.id = ANY(%s::uuid[])
GROUP BY 1
"""
PAYMENTS = "SELECT id, checkout_uuid::text FROM payments_payment WHERE merchant_id = %s"
PAID = ("captured", "refunding", "refunded")


def unfinished_work(world: World, merchant_uuid: str) -> list[str]:
    """Describe the operations, checkouts and deliveries of a merchant that have not ended yet."""
    return [row[0] for row in world.rows(RESTLESS, world.broken_keys(), *[merchant_uuid] * 3)]


def find_violations(world: World, merchant_uuid: str, stories: list[Story], receiver: Receiver) -> list[str]:
    """Return a description of each violation."""
    violations = [f"answer: {rule}" for story in stories for rule in story.backend.broken_rules]
    rows = world.rows(CHECKOUTS, merchant_uuid)
    violations += _promises(stories)
    calls = [call for backend in {story.backend for story in stories} for call in backend.calls]
    violations += histories.find_inconsistencies(calls)
    violations += _money(world, merchant_uuid, {row[0]: row for row in rows})
    violations += _events(world, merchant_uuid, rows, receiver)
    return sorted(set(violations))


def _promises(stories: list[Story]) -> list[str]:
    """Check that every 2xx response is still true."""
    violations = []
    for story in stories:
        current: Any = story.backend.read(story.checkout_uuid) if story.checkout_uuid else {}
        for success in story.successes:
            if success.verb == "capture" and current["status"] not in PAID:
                violations.append(f"{story.checkout_uuid}: was reported as captured, is {current['status']}")
            if success.verb == "capture" and success.captured_at != current.get("captured_at"):
                violations.append(
                    f"{story.checkout_uuid}: was captured at {success.captured_at}, then at another time"
                )
            if success.verb == "cancel" and current["status"] != "voided":
                violations.append(f"{story.checkout_uuid}: was reported as cancelled, is {current['status']}")
            if success.verb == "refund" and len(current.get("refunds", [])) != 1:
                violations.append(f"{story.checkout_uuid}: was refunded once, has {current.get('refunds')}")
    return violations


def _money(world: World, merchant_uuid: str, checkouts: dict[str, Any]) -> list[str]:
    """Check that the bank's charges and refunds agree with our books, and that the bank holds no money."""
    owner = {str(payment): checkout for payment, checkout in world.rows(PAYMENTS, merchant_uuid)}
    borne: Counter[str] = Counter()
    in_doubt = dict(world.rows(IN_DOUBT, merchant_uuid, world.broken_keys()))
    books = dict(world.rows(BOOKS, merchant_uuid))
    violations = []
    for charge in world.charges(merchant_uuid):
        if charge.payment not in owner:
            violations.append(f"the bank knows a payment {charge.payment} that we do not")
            continue
        if charge.state == "held":  # an open challenge ends after ten minutes
            violations.append(f"{owner[charge.payment]}: the bank still has a charge {charge.state}")
        borne[owner[charge.payment]] += charge.borne
        if charge.captures > 1:
            violations.append(f"{owner[charge.payment]}: captured {charge.captures} times at the bank")
    for checkout_uuid, (_, status, amount, _held) in checkouts.items():
        ours, due = books.get(checkout_uuid, 0), amount if status == "captured" else 0
        lowest = ours - in_doubt.get(checkout_uuid, 0)
        if not lowest <= borne[checkout_uuid] <= ours:
            violations.append(f"{checkout_uuid}: its cards have borne {borne[checkout_uuid]}, and not {ours}")
        if not lowest <= due <= ours:
            violations.append(f"{checkout_uuid}: {status}, yet its cards have borne {ours}")
    return violations


def _events(world: World, merchant_uuid: str, rows: list[Any], receiver: Receiver) -> list[str]:
    """Check that each event exists once, and that all POSTs of a delivered event contain the same bytes.

    A delivery can be unfinished: if a worker died during an attempt, the next attempt is a minute later.
    """
    events = world.rows(EVENTS, merchant_uuid)
    counted = Counter((checkout_uuid, kind) for checkout_uuid, kind, _, _ in events)
    violations = []
    for checkout_uuid, status, _, was_held in rows:
        wanted = {
            "checkout.authorized": int(was_held),
            "checkout.voided": int(was_held and status == "voided"),
        }
        for kind, times in wanted.items():
            if counted[(checkout_uuid, kind)] != times:
                violations.append(f"{checkout_uuid}: {kind} is there {counted[(checkout_uuid, kind)]} times")
    arrived: dict[str, set[bytes]] = {}
    for arrival in list(receiver.arrivals):
        arrived.setdefault(arrival.event_id, set()).add(arrival.body)
    for checkout_uuid, kind, event_id, status in events:
        bodies = len(arrived.get(event_id, set()))
        if status == "parked" and kind == "checkout.voided":
            violations.append(f"{checkout_uuid}: {kind} was given up")
        if bodies > 1 or (status == "delivered" and bodies == 0):
            violations.append(f"{checkout_uuid}: {kind} is {status}, and arrived as {bodies} bodies")
    return violations
