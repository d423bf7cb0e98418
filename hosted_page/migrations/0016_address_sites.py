"""Adds the digest of an IPv6 address's /48 to the rows that limits by address count (rule limit.address)."""

from django.db import migrations, models

MODELS = ("smsmessage", "cardtry", "sharetake")


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0015_csp_reports")]

    operations = [
        migrations.AddField(
            model,
            "site_digest",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of an IPv6 address's /48; empty for IPv4.",
                max_length=64,
            ),
        )
        for model in MODELS
    ]
