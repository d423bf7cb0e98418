"""What a crash of PostgreSQL forgets, and what it does not (rule sign_in.crash)."""

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from config.lib import clock
from hosted_page.models import CardTry, SignInCode, SmsMessage
from payments.models import Merchant

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sign_in.crash")]
Kind = SmsMessage.Kind


def is_logged(row: SignInCode | SmsMessage | CardTry) -> bool:
    """Whether the table in which a row lies is in PostgreSQL's log."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT relpersistence FROM {row._meta.db_table} r JOIN pg_class c ON c.oid = r.tableoid WHERE r.id = %s",
            [row.pk],
        )
        ((persistence,),) = cursor.fetchall()
    return bool(persistence == "p")


def message(merchant: Merchant, kind: Kind) -> SmsMessage:
    now = clock.now()
    about = {"checkout_uuid": uuid7(), "subject": uuid7(), "created_at": now, "ends_at": now}
    return SmsMessage.objects.create(kind=kind, merchant=merchant, phone="+447700900123", **about)


@pytest.mark.parametrize("kind", Kind)
def test_texts_stay_but_those_of_codes(acme: Merchant, kind: Kind) -> None:
    made = message(acme, kind)
    assert is_logged(made) == (kind not in {Kind.CODE, Kind.RETURN})
    assert SmsMessage.objects.get(pk=made.pk).phone == "+447700900123"


def test_codes_and_tries_of_cards_are_forgotten() -> None:
    now = clock.now()
    code = SignInCode.objects.create(subject=uuid7(), phone="+447700900123", created_at=now, expires_at=now)
    tried = CardTry.objects.create(subject=uuid7(), created_at=now)
    assert not is_logged(code) and not is_logged(tried)


def test_what_the_release_before_writes_and_reads_is_one_table_with_it(acme: Merchant) -> None:
    """That one knows the first table alone: it inserts there, and reads, changes and deletes in both."""
    made = message(acme, Kind.CODE)
    with connection.cursor() as cursor:
        columns = ", ".join(
            f'"{field.column}"' for field in SmsMessage._meta.concrete_fields if field.column != "id"
        )
        cursor.execute(
            f"INSERT INTO hosted_page_smsmessage (id, {columns}) SELECT %s, {columns} FROM hosted_page_smsmessage",
            [uuid7()],
        )
    assert sorted(map(is_logged, SmsMessage.objects.all())) == [False, True]
    assert SmsMessage.objects.update(receipt="delivered") == 2
    assert SmsMessage.objects.filter(receipt="delivered").exclude(pk=made.pk).delete()[0] == 1
    assert made.__class__.objects.get().pk == made.pk


def test_what_is_forgotten_has_the_indexes_of_what_stays() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT replace(indrelid::regclass::text, '_unlogged', ''), count(*),
                count(DISTINCT (pg_get_expr(indpred, indrelid), pg_get_expr(indexprs, indrelid), indkey::text))
            FROM pg_index WHERE replace(indrelid::regclass::text, '_unlogged', '') IN (
                SELECT replace(relname, '_unlogged', '') FROM pg_class WHERE relname LIKE 'hosted%%_unlogged')
            GROUP BY 1"""
        )
        found = cursor.fetchall()
    assert len(found) == 3 and all(count == 2 * kinds for _, count, kinds in found)
