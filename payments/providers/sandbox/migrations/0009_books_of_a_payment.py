"""A refund keeps what it is for and that it had settled; a dispute keeps when its money moved."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bank", "0008_no_call_locks_its_charge"),
    ]

    operations = [
        migrations.AddField(
            model_name="call",
            name="has_returned",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Whether a refund was settled before it failed."
            ),
        ),
        migrations.AddField(
            model_name="call",
            name="refund",
            field=models.UUIDField(
                blank=True, help_text="The caller's id of the refund that it is for.", null=True
            ),
        ),
        migrations.AddField(
            model_name="call",
            name="share",
            field=models.UUIDField(
                blank=True, help_text="The caller's id of the share that it is for.", null=True
            ),
        ),
        migrations.AddField(
            model_name="dispute",
            name="is_inquiry",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="dispute",
            name="moved_at",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.DateTimeField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="When decisions moved its money: back to the merchant, or away again.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="fault",
            name="mode",
            field=models.CharField(
                choices=[
                    ("down", "the connection breaks before anything is done"),
                    ("error", "nothing is done, the answer is a 500"),
                    ("hang", "nothing is done, and no answer comes"),
                    ("done_then_hang", "it is done, and no answer comes"),
                    ("done_then_reset", "it is done, and the connection breaks"),
                    ("done_then_error", "it is done, the answer is a 500"),
                    ("nonsense", "it is done, the answer makes no sense"),
                    ("garbage", "it is done, and told with garbage wherever that does not matter"),
                    ("no_amount", "it is done, and told with an amount that is no number"),
                    ("notify_twice", "it is done and told twice"),
                    ("notify_first", "it is told before it is answered"),
                    ("replayed_500", "nothing is done, and its key is answered 500 for ever"),
                    ("done_replayed_500", "it is done, and its key is answered 500 for ever"),
                    ("already_captured", "it was captured in the bank's dashboard just before"),
                    ("pending", "it is accepted, and done 3 s later"),
                    ("pending_for_ever", "it is accepted, and never done"),
                    ("pending_then_failed", "it is accepted, and refused 3 s later"),
                    ("forgets_keys", "its key is forgotten: it is done anew, or known by the payment alone"),
                    ("not_vouched", "looked up by its key alone: not found proves nothing"),
                    ("partial_hold", "half of the amount is held"),
                    ("refund_card_closed", "refused: the card's account is closed"),
                    ("void_refused_once", "refused for a passing reason"),
                    ("void_refused", "refused for good"),
                    ("stale", "the books are read without what is newer than five seconds"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="fault",
            name="verb",
            field=models.CharField(
                help_text="authorize, capture, void, refund, look_up or movements", max_length=10
            ),
        ),
    ]
