"""Card tokens, good for a minute, are left out of PostgreSQL's log; a charge keeps what it must know of them.

New tokens lie in a table that inherits from the old one, as sign-in codes do: the release before finds them there.
"""

from django.db import migrations, models

# In the order in which an authorization locks them, so that neither waits for the other for ever.
LOCKED = "LOCK TABLE bank_cardtoken, bank_charge IN ACCESS EXCLUSIVE MODE"
LET_GO = """
ALTER TABLE bank_charge
    DROP CONSTRAINT bank_charge_token_id_key, DROP CONSTRAINT bank_charge_token_id_e3080638_fk_bank_cardtoken_id
"""
APART = """
CREATE UNLOGGED TABLE bank_cardtoken_unlogged (LIKE bank_cardtoken INCLUDING INDEXES) INHERITS (bank_cardtoken)
"""
BACK = [
    "INSERT INTO bank_cardtoken SELECT * FROM bank_cardtoken_unlogged",
    "DROP TABLE bank_cardtoken_unlogged",
]


class Migration(migrations.Migration):
    dependencies = [("bank", "0006_cards_of_before")]

    operations = [
        migrations.RunSQL(
            [LOCKED, LET_GO],
            migrations.RunSQL.noop,
            state_operations=[
                migrations.AlterField(
                    "charge",
                    "token",
                    models.UUIDField(db_column="token_id", help_text="The token's id, used for it alone."),
                )
            ],
        ),
        migrations.RunSQL(APART, BACK),
    ]
