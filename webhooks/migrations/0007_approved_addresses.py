"""Personal data waits until the address of its endpoint is approved; a waiting delivery has no due time."""

from django.db import migrations, models
from django.db.models import Q

NAME = "a_pending_delivery_has_a_next_attempt"
_CHANGE = """
ALTER TABLE webhooks_delivery DROP CONSTRAINT {name};
ALTER TABLE webhooks_delivery ADD CONSTRAINT {name} CHECK (
    (status = 'pending' AND ended_at IS NULL AND {due})
    OR (status <> 'pending' AND ended_at IS NOT NULL AND next_attempt_at IS NULL)) NOT VALID;
ALTER TABLE webhooks_delivery VALIDATE CONSTRAINT {name};
"""
DUE = "next_attempt_at IS NOT NULL"
DUE_OR_HELD = f"({DUE} OR event_type = 'marketing.opted_in')"


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0006_ascending_index")]

    operations = [
        migrations.AddField(
            "subscription",
            "is_approved",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether an owner or admin chose this address: only then may personal data go there.",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    _CHANGE.format(name=NAME, due=DUE_OR_HELD), _CHANGE.format(name=NAME, due=DUE)
                )
            ],
            state_operations=[
                migrations.RemoveConstraint("delivery", NAME),
                migrations.AddConstraint(
                    "delivery",
                    models.CheckConstraint(
                        condition=Q(status="pending", ended_at=None)
                        & (Q(next_attempt_at__isnull=False) | Q(event_type="marketing.opted_in"))
                        | (~Q(status="pending") & Q(next_attempt_at=None, ended_at__isnull=False)),
                        name=NAME,
                    ),
                ),
            ],
        ),
    ]
