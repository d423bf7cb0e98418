"""The accounts at the provider that merchants had before; a trigger keeps each from now on, whoever changes it.

It writes as the tables' owner: the service that runs meanwhile is granted the table only when all has been migrated.
"""

import django.db.models.deletion
from django.db import migrations, models

KEEP = """
CREATE FUNCTION former_account_is_kept() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO payments_formeraccount (merchant_id, provider_account) VALUES (OLD.id, OLD.provider_account)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER former_accounts_are_kept AFTER UPDATE OF provider_account ON payments_merchant
    FOR EACH ROW WHEN (OLD.provider_account <> NEW.provider_account) EXECUTE FUNCTION former_account_is_kept();
"""
LET_GO = """
DROP TRIGGER former_accounts_are_kept ON payments_merchant;
DROP FUNCTION former_account_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0014_no_operation_locks_its_payment")]

    operations = [
        migrations.CreateModel(
            name="FormerAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "provider_account",
                    models.CharField(blank=True, help_text="Empty: ours.", max_length=64),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("merchant", "provider_account"), name="a_former_account_is_kept_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(KEEP, LET_GO),
    ]
