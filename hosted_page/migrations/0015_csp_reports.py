"""What browsers report that pages tried against their policy, counted in few rows."""

import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0014_lookup_key_rotation")]

    operations = [
        migrations.CreateModel(
            name="CspReport",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("page", models.CharField(help_text="The kind of page.", max_length=20)),
                ("directive", models.CharField(help_text="The directive of the policy.", max_length=20)),
                (
                    "blocked",
                    models.CharField(help_text="The host that was blocked, or a keyword.", max_length=100),
                ),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                ("count", models.PositiveBigIntegerField()),
            ],
            options={
                "verbose_name": "CSP report",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("page", "directive", "blocked"), name="a_violation_has_one_row"
                    )
                ],
            },
        ),
    ]
