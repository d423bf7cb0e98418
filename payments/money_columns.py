"""Makes money columns for the admin, with amounts formatted for people."""

from functools import cache
from operator import attrgetter
from typing import Any

from django.contrib import admin

from config.lib.admin.columns import AMOUNT_SUFFIX, Column
from config.lib.admin.readonly import ReadOnlyAdmin
from payments import money


@cache
def amount_column(name: str, title: str, currency: str) -> Column:
    """Return a column that formats an amount in minor units.

    `name` is the field, and `currency` is the path to the currency code of the row.
    """
    code = attrgetter(currency)

    def format_cell(row: Any) -> str:
        return money.display(getattr(row, name), code(row))

    # If the function had the same name as the field, the admin would show the help text of the field, "Minor units".
    format_cell.__name__ = f"{name}{AMOUNT_SUFFIX}"
    return admin.display(description=title)(format_cell)


class MoneyAdmin(ReadOnlyAdmin):
    """Read-only admin pages that show the amounts of a row in its currency."""

    amounts: tuple[str, ...] = ("amount",)
    currency = "currency"

    def column(self, name: Any) -> Any:
        if name in self.amounts:
            return amount_column(name, self.titles.get(name) or name.replace("_", " "), self.currency)
        return super().column(name)
