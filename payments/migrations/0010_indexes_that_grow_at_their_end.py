"""Indexes by time that rise, so that what is new fills their pages: falling ones split theirs into halves."""

from django.db import migrations, models

OF_CARD, FALLING = "payment_of_card", "payments_pa_merchan_301a0c_idx"
MOVED = "payments_posting (merchant_id, account, created_at, id) INCLUDE (amount, currency)"
FELL = "payments_posting (merchant_id, account, created_at DESC, id DESC) INCLUDE (amount, currency)"
PAID = "payments_payment (merchant_id, card_last4, created_at)"


def turn(new: str, made: str, old: str, made_before: str, state: list[object]) -> migrations.RunSQL:
    """Make the rising index, then drop the falling one."""

    def replace(name: str, on: str, other: str) -> list[str]:
        drop = "DROP INDEX CONCURRENTLY IF EXISTS"
        return [f"{drop} {name}", f"CREATE INDEX CONCURRENTLY {name} ON {on}", f"{drop} {other}"]

    return migrations.RunSQL(replace(new, made, old), replace(old, made_before, new), state_operations=state)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0009_ledger_sums")]

    operations = [
        turn(
            OF_CARD,
            PAID,
            FALLING,
            "payments_payment (merchant_id, card_last4, created_at DESC)",
            [
                migrations.RemoveIndex("payment", FALLING),
                migrations.AddIndex(
                    "payment",
                    models.Index(fields=["merchant", "card_last4", "created_at"], name=OF_CARD),
                ),
            ],
        ),
        turn(
            "posting_of_account",
            MOVED,
            "posting_movements",
            FELL,
            [
                migrations.RemoveIndex("posting", "posting_movements"),
                migrations.AddIndex(
                    "posting",
                    models.Index(
                        fields=["merchant", "account", "created_at", "id"],
                        include=["amount", "currency"],
                        name="posting_of_account",
                    ),
                ),
            ],
        ),
    ]
