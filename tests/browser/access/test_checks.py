"""The accessibility checks find all faults on a faulty page, and no faults on a correct page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.access import checks

pytestmark = [pytest.mark.journey, pytest.mark.long]
TOP = "<!doctype html><meta name=viewport content='width=device-width'>"
WRONG = {
    "colours": (
        "<button style='border: 0'>Pay</button>",
        "<progress style='appearance: none; height: 20px; border: 1px solid' max=9 value=9></progress>"
        "<style>progress::-webkit-progress-value {background: #141b17}</style>",
        "<svg width=9 height=9 style='forced-color-adjust: none'><rect width=9 height=9"
        " fill='#fed'></rect></svg>",
        "<ol><li aria-current=step style='background: red'>Phone</li><li>Pay</li></ol>",
    ),
    "spacing": (
        "<p style='height: 24px; width: 6rem; overflow: hidden; white-space: nowrap'>Held, not taken</p>",
    ),
    "motion": (
        "<p style='transition: color 1s'>Held</p>",
        "<style>p::after {content: '.'; animation: on 1s infinite} @keyframes on {to {opacity:"
        " 0}}</style><p>Held</p>",
    ),
    "reflow": (
        "<p style='width: 40rem'>Held</p>",
        "<p style='position: fixed; inset: 0; margin: 0; background: red'></p><a href='#'"
        " style='padding: 9px'>Pay</a>",
        "<button style='outline: 0; padding: 9px'>Pay with your card</button>",
        "<button style='height: 20px'>Pay with your card</button>",
        "<p style='white-space: nowrap; overflow: hidden; width: 5rem'>Held, not taken yet</p>",
    ),
}


@pytest.mark.parametrize("check", checks.ALL)
def test_a_check_finds_nothing_where_all_is_well(open_page: Callable[..., Page], check: str) -> None:
    page = open_page()
    page.set_content(f"{TOP}<p>Held</p><button style='padding: 9px'>Pay with your card</button>")
    assert checks.ALL[check](page) == []


@pytest.mark.parametrize(
    ("check", "wrong"), [(check, wrong) for check, pages in WRONG.items() for wrong in pages]
)
def test_a_check_finds_what_is_wrong(open_page: Callable[..., Page], check: str, wrong: str) -> None:
    page = open_page()
    page.set_content(TOP + wrong)
    assert len(checks.ALL[check](page)) >= 1
