"""The links on a row's admin page lead to lists of the rows that refer to this row."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import ForeignKey
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from config.lib.admin import panels
from payments.models import Payment, Posting
from portal.models import User

pytestmark = pytest.mark.django_db


def shown_of(model: Any) -> Any:
    return admin.site._registry[model]


class TestReferring:
    def test_yields_foreign_keys_and_plain_keys(self) -> None:
        names = {
            model: list(panels.referring_fields(Checkout, shown_of(model))) for model in admin.site._registry
        }
        assert "checkout" in names[next(m for m in names if m._meta.model_name == "refund")]
        assert "checkout_uuid" in names[Payment]

    def test_leaves_out_relations_that_would_read_a_whole_table(self) -> None:
        assert list(panels.referring_fields(Payment, shown_of(Checkout))) == []

    def test_of_every_admin_leads_by_an_index(self) -> None:
        """Each column that a link filters by is the first column of a database index.

        A partial index counts only if its condition is that the column is not null. For a partitioned table, each
        partition must have the index.
        """
        with connection.cursor() as cursor:
            cursor.execute("""
                WITH parts AS (
                    SELECT oid AS whole, oid AS part FROM pg_class WHERE relkind = 'r'
                    UNION ALL SELECT c.oid, t.relid FROM pg_class c, pg_partition_tree(c.oid) t
                    WHERE c.relkind = 'p' AND t.isleaf
                )
                SELECT p.whole::regclass::text, a.attname FROM parts p
                JOIN pg_index i ON i.indrelid = p.part
                JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                    AND (i.indpred IS NULL
                        OR pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname))
                GROUP BY p.whole, a.attname
                HAVING count(DISTINCT p.part) = (SELECT count(*) FROM parts WHERE parts.whole = p.whole)
            """)
            indexed = set(cursor.fetchall())
        unfound = [
            f"{model._meta.label}.{name}"
            for model, shown in admin.site._registry.items()
            for field in model._meta.fields
            if isinstance(field, ForeignKey) and field.related_model in admin.site._registry
            for name in panels.referring_fields(field.related_model, shown)
            if name == field.name and (model._meta.db_table, field.column) not in indexed
        ]
        assert unfound == []


def test_a_list_link_names_the_merchant_if_the_lists_index_starts_with_it(captured: Checkout) -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("operator@example.com")
    registered = list(admin.site._registry.values())
    links = {
        link.title: link.address for link in panels.other_list_links(registered, request, captured, set())
    }
    assert f"merchant__exact={captured.merchant_id}" in links["Postings"]
    assert "merchant__exact" not in links["Changes"], "a change has no merchant of its own"


def test_lists_are_counted_in_one_statement_and_empty_ones_left_out(captured: Checkout) -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("operator@example.com")
    registered = list(admin.site._registry.values())
    with CaptureQueriesContext(connection) as asked:
        links = panels.other_list_links(registered, request, captured, set(), is_counted=True)
    counts = {link.title: link.rows for link in links}
    assert len(asked) == 1
    assert (counts["Payments"], counts["Postings"]) == ("1", str(Posting.objects.count()))
    assert "Disputes" not in counts, "it has none"
    assert counts["Idempotency keys"] == "", "no index finds them, so they are not counted"


def test_every_list_that_is_counted_has_an_index_for_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT DISTINCT i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
            JOIN pg_class c ON c.oid = i.indrelid WHERE i.indpred IS NULL AND c.relkind IN ('r', 'p')
        """)
        found = cursor.fetchall()
    unfound = [
        f"{model._meta.label}.{name}"
        for model, shown in admin.site._registry.items()
        for name in panels.referring_fields(Checkout, shown)
        if name not in getattr(shown, "uncounted", ())
        and not any(
            table == model._meta.db_table
            and definition.partition("(")[2].removeprefix("merchant_id, ").startswith(column)
            for column in [field.column for field in model._meta.fields if field.name == name]
            for table, definition in found
        )
    ]
    assert unfound == []
