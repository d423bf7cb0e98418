"""Movements follow the provider's books; bookings move nothing there; both are posted under their own ids."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

APPEND_ONLY = """
CREATE TRIGGER movements_are_append_only BEFORE UPDATE OR DELETE ON payments_movement
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""
NOT_APPEND_ONLY = "DROP TRIGGER movements_are_append_only ON payments_movement"


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0017_key_ages"),
    ]

    operations = [
        migrations.CreateModel(
            name="Movement",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        help_text="In the ledger.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("checkout_uuid", models.UUIDField(db_index=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("captured", "captured: the card was charged"),
                            ("refunded", "refunded: the card got it back"),
                            ("refund_returned", "refund returned: a settled refund failed"),
                            ("dispute_withdrawn", "dispute withdrawn: the payer's bank took it back"),
                            ("dispute_reinstated", "dispute reinstated: the payer's bank gave it again"),
                        ],
                        max_length=18,
                    ),
                ),
                (
                    "amount",
                    models.BigIntegerField(
                        help_text="Minor units of the payment's currency; what goes out is negative."
                    ),
                ),
                ("reference", models.CharField(help_text="The provider's id of the fact.", max_length=280)),
                (
                    "bearer",
                    models.CharField(
                        choices=[
                            ("provider", "provider: what the provider owes us"),
                            ("merchant", "merchant: what we owe the merchant"),
                            ("lead", "lead: what we owe the lead"),
                            ("outside", "outside: what moved where we do not see it"),
                        ],
                        help_text="At whose expense, or in whose favour.",
                        max_length=10,
                    ),
                ),
                ("occurred_at", models.DateTimeField(help_text="As the provider says.")),
                ("recorded_at", models.DateTimeField(help_text="By the database's clock.")),
            ],
        ),
        migrations.CreateModel(
            name="Reconciled",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "until",
                    models.DateTimeField(
                        help_text="By the database's clock, when the last complete run began."
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "reconciled",
            },
        ),
        migrations.RemoveConstraint(
            model_name="booking",
            name="a_booking_is_of_something",
        ),
        migrations.RemoveConstraint(
            model_name="dispute",
            name="a_dispute_is_booked_once",
        ),
        migrations.RemoveConstraint(
            model_name="dispute",
            name="a_dispute_has_an_end_when_it_is_decided",
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="an_operation_says_what_it_is_for",
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="only_a_settled_refund_comes_back",
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="a_refund_comes_back_once",
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="only_what_is_owed_to_the_lead_is_closed",
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="what_is_owed_is_closed_once",
        ),
        migrations.RemoveField(
            model_name="booking",
            name="account",
        ),
        migrations.RemoveField(
            model_name="booking",
            name="borne_as",
        ),
        migrations.RemoveField(
            model_name="booking",
            name="reference",
        ),
        migrations.RemoveField(
            model_name="dispute",
            name="decided_as",
        ),
        migrations.RemoveField(
            model_name="operation",
            name="account",
        ),
        migrations.RemoveField(
            model_name="operation",
            name="closed_as",
        ),
        migrations.RemoveField(
            model_name="operation",
            name="returned_as",
        ),
        migrations.AddField(
            model_name="booking",
            name="reverses",
            field=models.OneToOneField(
                blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to="payments.booking"
            ),
        ),
        migrations.AddField(
            model_name="booking",
            name="share_uuid",
            field=models.UUIDField(blank=True, help_text="The share that it was for.", null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="resends",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The settled refund that came back, whose money this one gives again.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="resent_by",
                to="payments.operation",
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="synced_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When the provider's list was requested that was recorded last.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="booking",
            name="amount",
            field=models.BigIntegerField(help_text="Minor units; negative in a reversal."),
        ),
        migrations.AlterField(
            model_name="booking",
            name="id",
            field=models.UUIDField(
                default=uuid_utils.compat.uuid7,
                editable=False,
                help_text="In the ledger.",
                primary_key=True,
                serialize=False,
            ),
        ),
        migrations.AlterField(
            model_name="booking",
            name="kind",
            field=models.CharField(
                choices=[
                    ("settled_outside", "settled outside: the payer got it by another way"),
                    ("closing", "closing: it is owed to the lead no more"),
                ],
                max_length=15,
            ),
        ),
        migrations.AlterField(
            model_name="booking",
            name="note",
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name="booking",
            name="operation",
            field=models.ForeignKey(
                blank=True,
                help_text="The refund that the card could not take.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="bookings",
                to="payments.operation",
            ),
        ),
        migrations.AlterField(
            model_name="dispute",
            name="created_at",
            field=models.DateTimeField(help_text="When it was recorded."),
        ),
        migrations.AlterField(
            model_name="dispute",
            name="id",
            field=models.UUIDField(
                default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
            ),
        ),
        migrations.AlterField(
            model_name="ledgersum",
            name="account",
            field=models.CharField(
                choices=[
                    ("provider", "provider: what the provider owes us"),
                    ("merchant", "merchant: what we owe the merchant"),
                    ("lead", "lead: what we owe the lead"),
                    ("outside", "outside: what moved where we do not see it"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("payment", "payment: the card is to pay, or to be let go"),
                    ("reimbursement", "reimbursement: what a mate paid goes to the lead"),
                    ("refund_part", "refund part: a card gets back what it bore"),
                    ("outside", "outside: others made it at the provider"),
                ],
                default="payment",
                max_length=13,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="account",
            field=models.CharField(
                choices=[
                    ("provider", "provider: what the provider owes us"),
                    ("merchant", "merchant: what we owe the merchant"),
                    ("lead", "lead: what we owe the lead"),
                    ("outside", "outside: what moved where we do not see it"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="transaction",
            field=models.UUIDField(help_text="The movement or the booking that it posts."),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount", 0), _negated=True), name="a_booking_is_of_something"
            ),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("amount__gt", 0), ("reverses", None)),
                    models.Q(("amount__lt", 0), ("reverses__isnull", False)),
                    _connector="OR",
                ),
                name="a_reversal_takes_back",
            ),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "settled_outside"), ("operation__isnull", False)),
                    models.Q(("kind", "closing"), ("operation", None), ("share_uuid__isnull", False)),
                    _connector="OR",
                ),
                name="a_booking_says_what_it_is_for",
            ),
        ),
        migrations.AddConstraint(
            model_name="dispute",
            constraint=models.UniqueConstraint(
                models.F("payment"), models.F("reference"), name="a_dispute_is_recorded_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="dispute",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at", None), ("status", "open")),
                    models.Q(models.Q(("status", "open"), _negated=True), ("closed_at__isnull", False)),
                    _connector="OR",
                ),
                name="a_dispute_has_an_end_when_it_is_decided",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("purpose__in", ["payment", "outside"]), ("refund_uuid", None), ("share_uuid", None)
                    ),
                    models.Q(
                        ("purpose", "reimbursement"), ("refund_uuid", None), ("share_uuid__isnull", False)
                    ),
                    models.Q(
                        ("purpose", "refund_part"), ("refund_uuid__isnull", False), ("share_uuid", None)
                    ),
                    _connector="OR",
                ),
                name="an_operation_says_what_it_is_for",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(("resends", None), ("kind", "refund"), _connector="OR"),
                name="only_a_refund_is_sent_again",
            ),
        ),
        migrations.AddField(
            model_name="movement",
            name="dispute",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="movements",
                to="payments.dispute",
            ),
        ),
        migrations.AddField(
            model_name="movement",
            name="operation",
            field=models.ForeignKey(
                blank=True,
                help_text="The act that caused it, ours or of others.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="movements",
                to="payments.operation",
            ),
        ),
        migrations.AddField(
            model_name="movement",
            name="payment",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="movements",
                to="payments.payment",
            ),
        ),
        migrations.AddConstraint(
            model_name="reconciled",
            constraint=models.CheckConstraint(
                condition=models.Q(("id", 1)), name="the_books_are_read_until_one_moment"
            ),
        ),
        migrations.AddIndex(
            model_name="movement",
            index=models.Index(
                models.F("dispute"),
                condition=models.Q(("dispute__isnull", False)),
                name="movement_of_dispute",
            ),
        ),
        migrations.AddConstraint(
            model_name="movement",
            constraint=models.UniqueConstraint(
                models.F("payment"), models.F("kind"), models.F("reference"), name="a_fact_is_recorded_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="movement",
            constraint=models.UniqueConstraint(
                models.F("payment"), condition=models.Q(("kind", "captured")), name="a_card_is_charged_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="movement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("amount__gt", 0), ("kind__in", ["captured", "refund_returned", "dispute_reinstated"])
                    ),
                    models.Q(("amount__lt", 0), ("kind__in", ["refunded", "dispute_withdrawn"])),
                    _connector="OR",
                ),
                name="a_movement_goes_its_way",
            ),
        ),
        migrations.AddConstraint(
            model_name="movement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind__in", ["captured", "refunded", "refund_returned"]),
                        ("operation__isnull", False),
                    ),
                    models.Q(
                        ("dispute__isnull", False), ("kind__in", ["dispute_withdrawn", "dispute_reinstated"])
                    ),
                    _connector="OR",
                ),
                name="a_movement_has_its_cause",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                models.F("resends"), condition=models.Q(("resends__isnull", False)), name="operation_resends"
            ),
        ),
        migrations.RunSQL(APPEND_ONLY, NOT_APPEND_ONLY),
    ]
