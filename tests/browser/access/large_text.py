"""Finds broken words, text that is cut off, and labels that overlap if the user doubles the size of the text."""

from playwright.sync_api import Page, ViewportSize

from tests.browser.access.checks import CUT

PHONE: ViewportSize = {"width": 320, "height": 640}
# The browser setting that doubles the size of the text. The layout is then the same as on a screen of half
# the width, or at 200 % zoom.
TWICE = "--blink-settings=defaultFontSize=32"

# Finds words that are broken over two lines, although one line of the page has room for the whole word. A
# line is as wide as the page without its margins. A word ends at a space or a hyphen.
BROKEN = r"""() => {
  const line = innerWidth - 2 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), broken = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const around = text.parentElement;
    if (!around.checkVisibility({visibilityProperty: true})) continue;
    if (around.closest(".spoken, .skip, svg, .panel-rows")) continue;
    for (const word of text.data.matchAll(/[^\s\-–—\u200b\u00ad?]+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const parts = [...range.getClientRects()].filter(part => part.width);
      const width = parts.reduce((sum, part) => sum + part.width, 0);
      const isOnOneLine = new Set(parts.map(part => Math.round(part.top))).size < 2;
      if (!isOnOneLine && width <= line) broken.push(`${word[0]} in ${around.outerHTML.slice(0, 100)}`);
    }
  }
  return broken;
}"""
# Finds buttons and badges that are too small for their text.
SPILLED = """() => [...document.querySelectorAll(".button, .badge, .all-mine, summary")]
  .filter(it => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1).map(it => it.outerHTML.slice(0, 160))"""
# Finds pairs of overlapping labels in the same chart.
OVERLAPPING = """() => [...document.querySelectorAll(".chart-field")].flatMap(chart => {
  const labels = [...chart.querySelectorAll("text")].filter(label => label.checkVisibility())
    .map(label => [label.textContent, label.getBoundingClientRect()]);
  return labels.flatMap(([one, a], at) => labels.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
    .map(([other]) => `${one} / ${other}`));
})"""
LETTERS = """() => [...document.querySelectorAll(".chart-field text")].filter(label => label.checkVisibility())
  .map(label => [label.textContent, label.getBoundingClientRect().height])"""


def faults(page: Page) -> list[str]:
    """Return the broken words and the cut-off text of a page on a phone that is 320 pixels wide."""
    page.wait_for_load_state("load")
    page.set_viewport_size(PHONE)
    page.evaluate("document.querySelectorAll('.scrolls').forEach(wide => wide.hidden = true)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    found = [f"{wide} pixels wide"] * (wide > PHONE["width"])
    found += [f"broken: {word}" for word in page.evaluate(BROKEN)]
    found += [f"too small: {text}" for text in page.evaluate(SPILLED)]
    return found + [f"cut: {text}" for text in page.evaluate(CUT)]
