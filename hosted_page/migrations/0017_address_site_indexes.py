"""Adds the indexes by which the rows of a /48 are counted. IPv4 addresses have no entry in them."""

from django.db import migrations, models

COUNTED = models.Q(("is_counted", True), models.Q(("site_digest", ""), _negated=True))
OF_ALL = models.Q(("site_digest", ""), _negated=True)
# By model: the index, the rows that it has, and whether a second table has the rows that are not logged.
MADE = {
    "smsmessage": ("sms_site", COUNTED, True),
    "cardtry": ("card_try_site", COUNTED, True),
    "sharetake": ("share_take_site", OF_ALL, False),
}


def made(model: str, name: str, condition: models.Q, has_unlogged: bool) -> migrations.RunSQL:
    where = "is_counted AND NOT site_digest = ''" if condition is COUNTED else "NOT site_digest = ''"
    tables = {name: f"hosted_page_{model}"}
    if has_unlogged:
        tables[f"{name}_unlogged"] = f"hosted_page_{model}_unlogged"
    drops = [f"DROP INDEX CONCURRENTLY IF EXISTS {index}" for index in tables]
    creates = [
        f"CREATE INDEX CONCURRENTLY {index} ON {table} (site_digest, created_at) WHERE {where}"
        for index, table in tables.items()
    ]
    index = models.Index(models.F("site_digest"), models.F("created_at"), name=name, condition=condition)
    return migrations.RunSQL([*drops, *creates], drops, state_operations=[migrations.AddIndex(model, index)])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("hosted_page", "0016_address_sites")]

    operations = [made(model, *row) for model, row in MADE.items()]
