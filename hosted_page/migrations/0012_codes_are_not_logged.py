"""Sign-in codes, their texts and tries of cards are left out of PostgreSQL's log: a crash of it forgets them.

Nothing of them was promised. Whoever waits for a code asks for another one. The counts that begin anew are those of
codes for a number, a network and a range, and of cards declined for a phone and a network, at a moment that nobody
outside can choose; those of an order's declined cards, and the day's budgets of texts, are in rows that stay.

New rows lie in tables that inherit from the old ones, which nothing writes anew: the release before reads, changes and
deletes them there, and what it still writes is read by this one.
"""

from django.db import migrations

TABLES = ("hosted_page_signincode", "hosted_page_smsmessage", "hosted_page_cardtry")
APART = "CREATE UNLOGGED TABLE {table}_unlogged (LIKE {table} INCLUDING INDEXES) INHERITS ({table})"
BACK = ["INSERT INTO {table} SELECT * FROM {table}_unlogged", "DROP TABLE {table}_unlogged"]
# As hosted_page_smsmessage has it: a claim finds room on its page, and is in no index.
ROOM = "ALTER TABLE hosted_page_smsmessage_unlogged SET (fillfactor = 50)"


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0011_receipts_by_sms")]

    operations = [
        *(
            migrations.RunSQL(APART.format(table=table), [back.format(table=table) for back in BACK])
            for table in TABLES
        ),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
    ]
