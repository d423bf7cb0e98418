"""The HTML of the documentation page is converted to Markdown with the same content."""

import pytest

from portal.developer_docs import html_tree
from portal.developer_docs.page_markdown import MarkdownWriter

WRITER = MarkdownWriter(lambda href: f"https://x.example{href}")


def markdown(html: str) -> str:
    return "\n\n".join(WRITER.blocks(html_tree.parse_html(html)))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>A</h2><h3>B</h3><p>C\n  <b>d</b> <em>e</em></p>", "# A\n\n## B\n\nC **d** *e*"),
        ("<p>5&nbsp;s</p><p> </p>", "5 s"),
        ("<p>a*b &lt;c&gt; x|y</p>", r"a\*b \<c> x\|y"),
        ('<p><a href="/y">the <code>y</code></a></p>', "[the `y`](https://x.example/y)"),
        ("<p><code>a`b</code></p>", "``a`b``"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<ol><li><p>a</p><p>b</p></li><li>c</li></ol>", "1. a\n\n   b\n\n2. c"),
        ("<ul><li>a<ul><li>b</li></ul></li></ul>", "- a\n\n  - b"),
        ("<dl><div><dt>a</dt><dd>b</dd></div><div><dt>c</dt><dd></dd></div></dl>", "- a: b\n- c"),
        (
            "<table><thead><tr><th>A</th></tr></thead><tbody><tr><td><code>x|y</code></td></tr></tbody></table>",
            "| A |\n| --- |\n| `x\\|y` |",
        ),
        ('<div class="code"><p>Shell</p><pre><code>a\n b\n</code></pre></div>', "```sh\na\n b\n```"),
        ('<div class="code"><p>x.mjs</p><pre><code>a</code></pre></div>', "```js\na\n```"),
        ('<div class="code"><p>We send</p><pre><code>{}</code></pre></div>', "We send:\n\n```json\n{}\n```"),
        ('<div class="code"><p></p><pre><code>```</code></pre></div>', "````\n```\n````"),
        ("<details><summary>Read</summary>x <b>y</b><p>z</p></details>", "**Read**\n\nx **y**\n\nz"),
        ("<summary><h3>A</h3><span>b</span></summary>", "## A\n\nb"),
        ('<p>a<span class="spoken"> b</span></p><label>c</label><input><nav>d</nav>', "a"),
    ],
)
def test_an_element_becomes_markdown(html: str, text: str) -> None:
    assert markdown(html) == text
