"""Indexes by which people are found whose time is over. A migration that broke off is run again from its start."""

from django.db import migrations, models
from django.db.models import F, Q

INDEXES = {
    "customer": {
        "customer_known": ("id", "erased_at IS NULL", Q(("erased_at", None))),
        "customer_cards": (
            "erased_at",
            "cards_erased_at IS NULL AND erased_at IS NOT NULL",
            Q(("cards_erased_at", None), ("erased_at__isnull", False)),
        ),
    },
    "paymentrequest": {
        "share_asked_of": ("phone", "phone <> ''", Q(("phone", ""), _negated=True)),
        "share_named": ("id", "name <> ''", Q(("name", ""), _negated=True)),
    },
}


def build(model: str, name: str, column: str, where: str, condition: Q) -> migrations.RunSQL:
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    index = models.Index(F(column), name=name, condition=condition)
    return migrations.RunSQL(
        [drop, f"CREATE INDEX CONCURRENTLY {name} ON checkout_{model} ({column}) WHERE {where}"],
        [drop],
        state_operations=[migrations.AddIndex(model_name=model, index=index)],
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkout", "0003_erased_people")]
    operations = [
        build(model, name, *facts) for model, indexes in INDEXES.items() for name, facts in indexes.items()
    ]
