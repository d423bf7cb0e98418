"""A text is sent from its row: number and words wait encrypted and go with its end, the limits count digests."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

import config.lib.crypto
from config.lib.crypto import keyed_digest

RANGE_DIGITS = 4
ROWS = 1000
FILL_MERCHANT = """
UPDATE hosted_page_text t SET merchant_id = c.merchant_id FROM checkout_checkout c WHERE c.id = t.checkout_uuid
"""


def count_by_digests(apps, schema_editor):
    """What the limits count goes on counting. What waits is ended: it would have to be written anew."""
    Text = apps.get_model("hosted_page", "Text")
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else the table cannot be altered any more
        cursor.execute(FILL_MERCHANT)
    Text.objects.filter(merchant=None).delete()  # of a checkout that is not there
    rows = Text.objects.order_by("pk")
    while found := list(rows.filter(phone_digest="")[:ROWS]):
        for text in found:
            text.phone_digest = keyed_digest("text", text.plain_phone)
            text.range_digest = keyed_digest("text range", text.plain_phone[:-RANGE_DIGITS])
            text.ends_at = text.ended_at = text.created_at
        Text.objects.bulk_update(found, ["phone_digest", "range_digest", "ends_at", "ended_at"])


def forget_all(apps, schema_editor):
    """The way back: numbers are gone, so nothing is counted anew."""
    apps.get_model("hosted_page", "Text").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("hosted_page", "0002_guards"),
        ("payments", "0003_hung_clients"),
        ("checkout", "0002_guards"),
    ]
    operations = [
        migrations.RemoveIndex("text", "text_due"),
        migrations.RemoveIndex("text", "hosted_page_phone_8ae3bf_idx"),
        migrations.RemoveIndex("text", "hosted_page_number__221d5e_idx"),
        migrations.RenameField("text", "phone", "plain_phone"),
        migrations.RemoveField("text", "next_try_at"),
        migrations.RemoveField("text", "tries"),
        migrations.RemoveField("text", "language"),
        migrations.RemoveField("text", "number_range"),
        migrations.AddField(
            "text",
            "merchant",
            models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"),
        ),
        migrations.AddField(
            "text",
            "phone",
            config.lib.crypto.EncryptedTextField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            "text",
            "body",
            config.lib.crypto.EncryptedTextField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            "text",
            "phone_digest",
            models.CharField(blank=True, default="", help_text="Empty: it goes to nobody.", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            "text",
            "range_digest",
            models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            "text",
            "due_at",
            models.DateTimeField(blank=True, help_text="Empty: nobody takes it any more.", null=True),
        ),
        migrations.AddField(
            "text", "ends_at", models.DateTimeField(help_text="After which it is not sent.", null=True)
        ),
        migrations.AddField(
            "text",
            "claimed_at",
            models.DateTimeField(
                blank=True,
                help_text="From when on it may have been sent; nobody sends it again.",
                null=True,
            ),
        ),
        migrations.AddField("text", "ended_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunPython(count_by_digests, migrations.RunPython.noop),
        migrations.RemoveField("text", "plain_phone"),
        migrations.RunPython(migrations.RunPython.noop, forget_all),
        migrations.AlterField(
            "text",
            "merchant",
            models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"),
        ),
        migrations.AlterField(
            "text", "ends_at", models.DateTimeField(help_text="After which it is not sent.")
        ),
        migrations.AlterField(
            "text",
            "kind",
            models.CharField(
                choices=[
                    ("code", "Code"),
                    ("return", "return: a code for a lead who comes back"),
                    ("invitation", "Invitation"),
                    ("reminder", "Reminder"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            "text", models.Index(fields=["phone_digest", "created_at"], name="hosted_page_phone_d_0d7763_idx")
        ),
        migrations.AddIndex(
            "text", models.Index(fields=["range_digest", "created_at"], name="hosted_page_range_d_a1c7df_idx")
        ),
        migrations.AddIndex(
            "text", models.Index(F("due_at"), condition=Q(due_at__isnull=False), name="text_due")
        ),
        migrations.AddIndex("text", models.Index(F("ends_at"), condition=Q(ended_at=None), name="text_open")),
    ]
