"""Adds the digest of an IPv6 address's /48 to login attempts (rule limit.address)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("portal", "0010_previous_passwords")]

    operations = [
        migrations.AddField(
            "loginattempt",
            "site_digest",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of an IPv6 address's /48; empty for IPv4.",
                max_length=64,
            ),
        )
    ]
