"""The text of the documentation as HTML: where long code breaks, and tables that scroll."""

from portal.developer_docs import page_text


def test_breaks_long_code_at_its_separators_only() -> None:
    shown = page_text.render_inline("`POST /api/merchant/v1/checkouts` and `4242424242424242`")
    assert shown == (
        '<code class="long">POST /<wbr>api/<wbr>merchant/<wbr>v1/<wbr>checkouts</code>'
        " and <code>4242424242424242</code>"
    )
    assert page_text.render_inline("`<b>.aVeryLongNameOfAFunction()`").count("&lt;b&gt;.<wbr>a<wbr>Very") == 1


def test_says_above_a_table_with_many_columns_that_it_scrolls() -> None:
    wide, narrow = (
        page_text.render_block("\n".join([row, "|---" * columns + "|", row]), "States")
        for columns in (6, 5)
        for row in ["| x " * columns + "|"]
    )
    assert "Scroll the table sideways" in wide and "Scroll the table sideways" not in narrow
    for table in (wide, narrow):
        assert '<div class="scroll" tabindex="0" role="group" aria-label="States"><table>' in table
