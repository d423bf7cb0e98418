"""Adds the index by which the login attempts of a /48 are counted. IPv4 addresses have no entry in it."""

from django.db import migrations, models

NAME = "login_attempt_site"
DROP = f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}"
CREATE = f"""
CREATE INDEX CONCURRENTLY {NAME} ON portal_loginattempt (kind, site_digest, created_at DESC)
WHERE NOT site_digest = ''
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("portal", "0011_login_sites")]

    operations = [
        migrations.RunSQL(
            [DROP, CREATE],
            [DROP],
            state_operations=[
                migrations.AddIndex(
                    "loginattempt",
                    models.Index(
                        fields=["kind", "site_digest", "-created_at"],
                        name=NAME,
                        condition=models.Q(("site_digest", ""), _negated=True),
                    ),
                )
            ],
        )
    ]
