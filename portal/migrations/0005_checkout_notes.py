"""Notes that a merchant's people write on an order: nobody changes one."""

import django.db.models.deletion
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

GUARD = """
CREATE TRIGGER checkout_notes_are_append_only BEFORE UPDATE ON portal_checkoutnote
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0004_last_writes"), ("payments", "0002_guards")]

    operations = [
        migrations.CreateModel(
            name="CheckoutNote",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("checkout_uuid", models.UUIDField()),
                ("text", models.CharField(max_length=1000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="payments.merchant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["checkout_uuid", "created_at", "id"], name="note_of_checkout")
                ]
            },
        ),
        migrations.RunSQL(GUARD, "DROP TRIGGER checkout_notes_are_append_only ON portal_checkoutnote"),
    ]
