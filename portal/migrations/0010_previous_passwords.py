"""Keep the hashes of people's last passwords, from their current ones on, and when an unused account was disabled."""

import django.db.models.deletion
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

CURRENT = """
INSERT INTO portal_previouspassword (id, user_id, encoded, created_at)
SELECT gen_random_uuid(), id, password, now() FROM portal_user WHERE password NOT LIKE '!%' AND password <> ''
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0009_operators_entries")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="disuse_warned_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="user",
            name="disabled_for_disuse_at",
            field=models.DateTimeField(
                blank=True,
                help_text="After 90 days without a login; the person can enable it again.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="PreviousPassword",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("encoded", models.CharField(help_text="Hashed.", max_length=128)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="previous_passwords",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.RunSQL(CURRENT, migrations.RunSQL.noop),
    ]
