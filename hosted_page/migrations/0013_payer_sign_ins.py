"""Sign-ins of payers as rows, so that a sign-out is real and a sign-in ends after two hours."""

import uuid_utils.compat
from django.db import migrations, models

import config.lib.prepared


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0012_codes_are_not_logged")]

    operations = [
        migrations.CreateModel(
            name="PayerSignIn",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("subject", models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ("customer_uuid", models.UUIDField(db_index=True)),
                (
                    "is_proven",
                    models.BooleanField(help_text="By a code; otherwise the browser was remembered."),
                ),
                ("began_at", models.DateTimeField()),
            ],
            bases=(config.lib.prepared.PreparedModel,),
        ),
    ]
