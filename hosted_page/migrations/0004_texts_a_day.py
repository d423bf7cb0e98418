"""Texts of a day are counted, for each merchant and for all, as long as what they were sent for is not paid."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("hosted_page", "0003_texts_wait_encrypted"),
        ("payments", "0004_wider_answers"),
    ]

    operations = [
        migrations.CreateModel(
            name="TextDay",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateField(help_text="In UTC.")),
                ("count", models.PositiveIntegerField()),
                (
                    "warned_at",
                    models.DateTimeField(blank=True, help_text="When the operators were told.", null=True),
                ),
            ],
        ),
        migrations.RemoveIndex(
            model_name="text",
            name="hosted_page_address_68fcc1_idx",
        ),
        migrations.RemoveIndex(
            model_name="text",
            name="hosted_page_range_d_a1c7df_idx",
        ),
        migrations.AddField(
            model_name="text",
            name="is_counted",
            field=models.BooleanField(
                default=True,
                help_text="Until what it was sent for is paid: against address, range and the day's budgets.",
            ),
        ),
        migrations.AddIndex(
            model_name="text",
            index=models.Index(
                models.F("address_digest"),
                models.F("created_at"),
                condition=models.Q(("is_counted", True)),
                name="text_address",
            ),
        ),
        migrations.AddIndex(
            model_name="text",
            index=models.Index(
                models.F("range_digest"),
                models.F("created_at"),
                condition=models.Q(("is_counted", True)),
                name="text_range",
            ),
        ),
        migrations.AddIndex(
            model_name="text",
            index=models.Index(
                models.F("created_at"), condition=models.Q(("is_counted", True)), name="text_counted"
            ),
        ),
        migrations.AddField(
            model_name="textday",
            name="merchant",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: all merchants.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="payments.merchant",
            ),
        ),
        migrations.AddConstraint(
            model_name="textday",
            constraint=models.UniqueConstraint(
                models.F("day"),
                models.F("merchant"),
                name="a_days_texts_are_counted_once",
                nulls_distinct=False,
            ),
        ),
    ]
