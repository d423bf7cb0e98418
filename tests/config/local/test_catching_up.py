"""The demo shop reads the list of changed checkouts to find changes that no event has reported."""

from pathlib import Path
from typing import Any

import pytest

from config.local.shop import Shop
from config.local.shop_api import CallFailed


class Api:
    """A stub of the API. Its feed of changes has one checkout. The stub records the calls."""

    client_id = "shop"

    def __init__(self, **changed: Any) -> None:
        self.changed, self.asked = {"checkout_uuid": "c-1", **changed}, list[str]()

    def call(self, method: str, path: str, body: object = None, *, key: str = "") -> Any:
        self.asked.append(f"{method} {path.partition('updated_after')[0]}")
        if path.endswith("/capture"):
            return {"status": "captured"}
        return {"checkouts": [self.changed], "next_cursor": "the next"}


def shop(api: Any, folder: Path) -> Shop:
    made = Shop(api, "http://shop", str(folder / "shop.sqlite3"))
    made.rows("INSERT INTO orders VALUES ('o-1', 'Two tickets', 'today', 'c-1', NULL)")
    return made


def test_a_capture_whose_answer_was_lost_is_repeated_and_fulfilled_once(tmp_path: Path) -> None:
    api = Api(status="captured")
    kept = shop(api, tmp_path)
    kept.catch_up()
    assert api.asked == ["GET /checkouts?sort=updated_at&", "POST /checkouts/c-1/capture"]
    assert kept.rows("SELECT fulfilled_at FROM orders")[0]["fulfilled_at"]
    kept.catch_up()
    assert api.asked[2:] == ["GET /checkouts?sort=updated_at&cursor=the+next"]


def test_a_hold_is_left_to_its_webhook_event(tmp_path: Path) -> None:
    api = Api(status="authorized")
    shop(api, tmp_path).catch_up()
    assert len(api.asked) == 1


def test_a_failed_refund_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop(Api(status="voided", refunds=[{"status": "failed"}]), tmp_path).catch_up()
    assert "order o-1: a refund failed" in capsys.readouterr().out


def test_a_change_that_could_not_be_read_is_read_the_next_time(tmp_path: Path) -> None:
    class Silent(Api):
        def call(self, *asked: Any, **more: Any) -> Any:
            raise CallFailed("no_answer")

    silent = shop(Silent(), tmp_path)
    with pytest.raises(CallFailed):
        silent.catch_up()
    assert silent.rows("SELECT * FROM feed") == []
