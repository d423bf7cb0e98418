"""Gallery states of payers who share an order: the group link, its QR code, the lead's bill, and the outcomes."""

from collections.abc import Callable
from random import randint

from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage, at
from tests.browser.order import Order
from tests.browser.together.table import BACK, Table, laid, until
from tests.journeys import polling

TWO = ("Finn", "Priya")


def _free(stage: Stage) -> Page:
    return laid(stage).come()


def _asks_for_a_name(stage: Stage) -> Page:
    page = _free(stage)
    page.click("summary.free")
    expect(page.locator(".free-open input[name=name]")).to_be_visible()
    page.mouse.move(0, 0)
    return page


def _just_taken(stage: Stage) -> Page:
    table = laid(stage)
    page = table.come()
    table.take("Finn").context.close()
    page.click("button.free:has-text('Finn')")
    expect(page.locator(".group-notice")).to_be_visible()
    return page


def _some_have_come(stage: Stage, names: tuple[str, ...] | None = None) -> Table:
    """Return a shared order. Finn has paid his share. Priya has taken her share, but has not paid it."""
    table = laid(stage, names) if names else laid(stage)
    table.pay("Finn").context.close()
    table.take("Priya").context.close()
    return table


def _all_paid_at_the_link(stage: Stage) -> Page:
    table = laid(stage, TWO)
    link = table.link
    for name in TWO:
        table.pay(name).context.close()
    return table.come(link)


def _texted(stage: Stage) -> Page:
    """Show the group link of an order whose lead has texted Finn's link."""
    table = laid(stage)
    link, line = table.link, table.line(2)
    line.locator(".group-more > summary").click()
    form = line.locator("details:has(> form[action*=text-share])")
    form.locator("summary").click()
    number = f"07700 900{randint(100, 999)}"  # each number can get only a few texts per hour
    form.locator("input[name=phone]").fill(number)
    form.locator(".button-ink").click()
    expect(line).to_contain_text(number[-4:])
    page = table.come(link)
    expect(page.locator(".group-come a.link")).to_be_visible()
    return page


def _replaced(stage: Stage) -> Page:
    """Show the old link of a share for which the lead has asked again."""
    table = laid(stage)
    link = table.own_link(5)
    table.say_no(5)
    page = table.look("#said-no")
    page.click("[data-show=again]")
    page.click(".face-again .button-ink")
    expect(table.line(5)).to_have_attribute("data-status", "open")
    replaced = table.come(link)
    expect(replaced.locator("h1")).to_be_visible()
    return replaced


def _late_mate(stage: Stage) -> Page:
    page = laid(stage).look()
    page.click(".group-add a")
    page.fill("#new-amount", "5000")
    page.click(".group-add .button-ink")
    expect(page.locator("#new-amount-error")).to_be_visible()
    return page


def _held_up(stage: Stage) -> Page:
    table = _some_have_come(stage)
    table.look()
    table.lead.click(".one-link a")
    expect(table.lead.locator(".qr-table")).to_be_visible()
    return table.lead


def _said_no(stage: Stage) -> Page:
    table = laid(stage)
    table.say_no(5)
    return table.look("#said-no")


def _question(stage: Stage, face: str) -> Page:
    page = _said_no(stage)
    page.click(f"[data-show={face}]")
    expect(page.locator(f".face-{face}")).to_be_visible()
    return page


def _keep(stage: Stage) -> Page:
    return _question(stage, "keep")


def _each_kind_of_row(stage: Stage) -> Page:
    table = _some_have_come(stage)
    table.look(BACK)
    table.keep(6)
    table.say_no(5)
    return table.look("#said-no")


def _all_paid(stage: Stage) -> Page:
    table = laid(stage, TWO)
    for name in TWO:
        table.pay(name).context.close()
    return table.look(BACK, count=2)


def _refunded(stage: Stage) -> tuple[Table, Page]:
    """Return a refunded shared order, and the page of the mate who had paid a share."""
    table = laid(stage)
    mate = table.pay("Finn")
    table.look(BACK)
    stage.merchant.refund(table.order.checkout_uuid)
    stage.merchant.awaited(table.order.checkout_uuid, "refunded", within=15)
    return table, mate


def _refund_of_lead(stage: Stage) -> Page:
    table, _ = _refunded(stage)
    return at(table.look("#status[data-state=refunded]"), "refunded")


def _refund_of_mate(stage: Stage) -> Page:
    _, mate = _refunded(stage)
    mate.reload()
    return at(mate, "refunded")


def _no_longer_asked(stage: Stage) -> Page:
    table = laid(stage)
    page = table.come(table.own_link(2))
    table.keep(2)
    page.reload()
    return at(page, "link_ended")


def _disputed(stage: Stage) -> Table:
    """Return a shared order whose lead has disputed her payment."""
    table = laid(stage)
    table.order.be_disputed()
    return table


def _paused_share(stage: Stage) -> Page:
    table = _disputed(stage)
    return until(table.come(table.own_link(2)), "#status[data-state=paused]")


def _given_back(table: Table, place: int = 1) -> Page:
    """Return the lead's page after a won dispute of the payer in row `place` of the bill."""
    table.order.be_disputed(place)
    until(table.lead, ".paused")
    table.order.decide_the_dispute(is_won=False, place=place)
    # It is not enough to wait until .paused has disappeared, because a page that is still loading has no elements.
    return until(table.lead, ".group-state .tone-still")


def _given_back_bill(stage: Stage) -> Page:
    table = laid(stage)
    table.pay("Finn").context.close()
    return _given_back(table)


def _given_back_to_a_mate(stage: Stage) -> Page:
    table = laid(stage)
    table.pay("Finn").context.close()
    table.look(BACK)
    return _given_back(table, place=2)


def _given_back_share(stage: Stage) -> Page:
    table = laid(stage)
    link = table.own_link(2)
    _given_back(table)
    return table.come(link)


def _given_back_alone(stage: Stage) -> Page:
    """Show a lost dispute for an order that was not shared."""
    order = stage.order()
    page = stage.confirmed(order)
    order.be_disputed()
    _until_disputed(stage, order, "open")
    order.decide_the_dispute(is_won=False)
    _until_disputed(stage, order, "lost")
    page.goto(order.url)
    return at(page, "given_back")


def _until_disputed(stage: Stage, order: Order, status: str) -> None:
    def is_so() -> bool:
        return [one["status"] for one in stage.merchant.read(order.checkout_uuid).get("disputes", [])] == [
            status
        ]

    polling.until(is_so, within=20, what=f"a dispute that is {status}")


STATES: dict[str, Callable[[Stage], Page]] = {
    "37 group link, shares free": _free,
    "37 group link, asks for a name": _asks_for_a_name,
    "37 group link, just taken": _just_taken,
    "37 group link, some have come": lambda stage: _some_have_come(stage).come(),
    "37 group link, all gone": lambda stage: _some_have_come(stage, TWO).come(),
    "37 group link, all paid": _all_paid_at_the_link,
    "37 group link, a share was sent": _texted,
    "38 group link, a share taken": lambda stage: laid(stage).take("Finn"),
    "39 QR, held up": _held_up,
    "40 the bill, a mate said no": _said_no,
    "40 the bill, ask again": lambda stage: _question(stage, "again"),
    "40 the bill, keep it": _keep,
    "40 the bill, a late mate": _late_mate,
    "41 the bill, each kind of row": _each_kind_of_row,
    "41 the bill, all paid": _all_paid,
    "42 refunded, the lead of a split order": _refund_of_lead,
    "42 refunded, a mate": _refund_of_mate,
    "47 no longer asked": _no_longer_asked,
    "47 a newer link": _replaced,
    "49 disputed, a share": _paused_share,
    "49 disputed, group link": lambda stage: until(_disputed(stage).come(), ".group-free", count=0),
    "49 given back by the bank, the bill": _given_back_bill,
    "49 given back by the bank, to a mate": _given_back_to_a_mate,
    "49 given back by the bank, a share": _given_back_share,
    "49 given back by the bank, alone": _given_back_alone,
}
