"""Runs of the checklist's cases through a merchant's integration: a new table."""

import django.db.models.deletion
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0010_logos"),
        ("portal", "0005_checkout_notes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Trial",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("case", models.CharField(max_length=20)),
                ("checkout_uuid", models.UUIDField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "acted_at",
                    models.DateTimeField(blank=True, help_text="When the sandbox did its part.", null=True),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("next_look_at", models.DateTimeField(blank=True, null=True)),
                (
                    "has_passed",
                    models.BooleanField(blank=True, help_text="Unknown while it runs.", null=True),
                ),
                ("reason", models.CharField(blank=True, help_text="Why it has not passed.", max_length=400)),
                ("evidence", models.JSONField(default=list)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "-created_at"], name="trial_of_merchant"),
                    models.Index(
                        models.F("next_look_at"),
                        condition=models.Q(("next_look_at__isnull", False)),
                        name="trial_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("merchant"),
                        models.F("case"),
                        condition=models.Q(("ended_at", None)),
                        name="one_running_trial_of_a_case",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at", None), ("has_passed", None), ("next_look_at__isnull", False)
                            ),
                            models.Q(
                                ("ended_at__isnull", False),
                                ("has_passed__isnull", False),
                                ("next_look_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_trial_that_has_ended_has_an_outcome",
                    ),
                ],
            },
        ),
    ]
