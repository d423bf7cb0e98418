"""An audit entry says whether its person acted as an operator of the service."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("portal", "0008_key_holders")]

    operations = [
        migrations.AddField(
            "auditentry",
            "is_operators",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether the person acted as an operator of the service.",
            ),
        )
    ]
