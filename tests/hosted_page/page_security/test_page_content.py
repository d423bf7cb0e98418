import pytest

from hosted_page.page_security import page_content
from hosted_page.page_security.page_content import LoadedScript


def test_scripts_are_listed_with_their_integrity() -> None:
    text = (
        '<script src="/a.js" integrity="sha256-x" defer></script><SCRIPT SRC=https://b.example/b.js></SCRIPT>'
    )
    found = page_content.read_content(text)
    assert found.scripts == [LoadedScript("/a.js", "sha256-x"), LoadedScript("https://b.example/b.js", "")]
    assert found.other == []


END_OF_COMMENT = "an end of a comment that readers understand differently"


def test_the_first_of_two_equal_attributes_counts_as_in_browsers() -> None:
    text = "<script src='/evil.js' integrity='' src='/a.js' integrity='sha256-x'></script>"
    assert page_content.read_content(text).scripts == [LoadedScript("/evil.js", "")]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("<script>alert(1)</script>", "an inline script"),
        ("<script src>alert(1)</script>", "an inline script"),
        ("<iframe src='https://x.example'></iframe>", "an element iframe"),
        ("<base href='https://x.example'>", "an element base"),
        ("<object data='x'></object>", "an element object"),
        ("<button onclick='go()'>Pay</button>", "inline code in button, onclick"),
        ("<a href=' JavaScript:go()'>Pay</a>", "an address of inline code in a, href"),
        ("<script src='/evil.js' src='/a.js'></script>", "a repeated attribute src in script"),
        ("<!-- a --!><script src='/evil.js'></script> -->", END_OF_COMMENT),
        ("<form action='javascript:go()'></form>", "an address of inline code in form, action"),
    ],
)
def test_everything_else_that_can_run_code_is_reported(text: str, other: str) -> None:
    assert page_content.read_content(f"<p>{text}").other == [other]


@pytest.mark.parametrize(
    "text", ["", "\x00", "<", "<script src='x", "<!--<script>alert(1)</script>-->", "<p hidden>"]
)
def test_any_text_can_be_parsed(text: str) -> None:
    assert page_content.read_content(text).other == []
