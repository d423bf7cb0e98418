"""Checks that every page must pass: forced colours, reduced motion, reflow at 400 % zoom, and wide text spacing."""

import io

from PIL import Image
from playwright.sync_api import Page, ViewportSize

MIN_TARGET = 24  # minimum width and height in pixels (WCAG 2.2, 2.5.8)
TOO_SMALL = """least => [...document.querySelectorAll("a, button, summary, input:not([type=hidden]):not([type=radio])")]
  .filter(it => it.checkVisibility() && !it.closest("p, .hint, .spoken"))
  .map(it => [it.getBoundingClientRect(), it.outerHTML.slice(0, 120)])
  .filter(([box]) => box.width && (box.width < least || box.height < least)).map(([box, is]) => is)"""
# Finds text that does not fit into its box, and boxes that extend beyond the page. It skips the tables of the
# admin, because they scroll. It also skips the order's title in the page's band and in the collapsed order,
# because the title is shortened there on purpose.
CUT = """() => [...document.querySelectorAll("h1, h2, p, li, dd, dt, button, a, label, span, strong, bdi, summary")]
  .filter(it => it.checkVisibility())
  .filter(it => !it.closest(".spoken, .skip, svg, .panel-rows, .results, .band small, .order-name"))
  .filter(it => {
    const box = it.getBoundingClientRect(), style = getComputedStyle(it);
    const hides = style.overflowX !== "visible" && it.scrollWidth > it.clientWidth + 1;
    return box.width && (hides || box.right > innerWidth + 1 || box.left < -1);
  }).map(it => it.outerHTML.slice(0, 160))"""
SIZES = (375, 1280)
# The size that a window of 1280 by 1024 pixels has at 400 % zoom (WCAG 1.4.10).
AT_400_PERCENT: ViewportSize = {"width": 320, "height": 256}

APART = "* {line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important}"

# Finds controls without a visible border, current items that differ from their neighbours only in colour, and
# drawings that do not contrast with the background.
UNSEEN = """() => {
  const ground = document.createElement("i");
  ground.style.background = "Canvas";
  document.body.append(ground);
  const canvas = getComputedStyle(ground).backgroundColor;
  ground.remove();
  const shown = it => it.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && !it.closest(".spoken, .skip");
  const all = selector => [...document.querySelectorAll(selector)].filter(shown);
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(n => (n /= 255) <= .03928 ? n / 12.92 : ((n + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const isSeen = colour => {
    if (!colour.startsWith("rgb") || /^rgba.* 0\\)$/.test(colour)) return false;
    const [low, high] = [light(colour), light(canvas)].sort((one, other) => one - other);
    return (high + .05) / (low + .05) >= 3;
  };
  const sides = ["Top", "Right", "Bottom", "Left"];
  const edges = style => sides.filter(side => parseFloat(style[`border${side}Width`])
    && style[`border${side}Style`] !== "none" && isSeen(style[`border${side}Color`]));
  const isLined = it => [it, ...it.querySelectorAll("*")].some(part => {
    const style = getComputedStyle(part);
    return edges(style).length || style.textDecorationLine.includes("underline");
  });
  const drawn = it => {
    const style = getComputedStyle(it), dot = it.querySelector(".place-dot, .stage-dot");
    return JSON.stringify([style.fontWeight, style.outlineStyle, style.textDecorationLine,
      sides.map(side => style[`border${side}Width`]), dot && getComputedStyle(dot).borderTopWidth]);
  };
  const bare = all("button, input:not([type=hidden], [type=file]), select, textarea, .button, .badge, .notice, .chip")
    .filter(it => !isLined(it) && !it.closest("label, summary, svg") && !it.matches("[type=radio]"))
    .filter(it => it.type !== "checkbox" || getComputedStyle(it).appearance === "none");
  const same = all("[aria-current]").filter(it => {
    const all = it.closest("ol, ul, nav, .segments, p, div").querySelectorAll(it.tagName);
    const other = [...all].find(one => !one.matches("[aria-current]"));
    return other && drawn(other) === drawn(it);
  });
  const faint = all("svg :is(rect, path, circle, line, polyline, text, use)").filter(it => {
    const style = getComputedStyle(it), box = it.getBoundingClientRect();
    const isGap = it.matches(".share-gap, .chart-grid") || it.closest("defs, .qr");
    return box.width + box.height > 1 && !isGap && !isSeen(style.stroke) && !isSeen(style.fill);
  });
  return [...bare, ...same, ...faint].map(it => it.outerHTML.slice(0, 160));
}"""
MOVING = """() => [...document.querySelectorAll("*")].filter(it => ["", "::before", "::after"].some(part => {
  const style = getComputedStyle(it, part || null);
  const lasts = style.transitionDuration.split(",").some(one => parseFloat(one) > 0);
  return lasts || (style.animationName !== "none" && parseFloat(style.animationDuration) > 0);
})).map(it => it.outerHTML.slice(0, 160))"""
# Returns the box of a progress bar, and two pixels of the page below the bar.
BAR = """() => {
  const bar = [...document.querySelectorAll("progress")].find(it => it.checkVisibility() && it.value > it.max / 5);
  const box = bar?.getBoundingClientRect();
  return box && {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height + 2};
}"""
# The elements that can have the focus. A focused element needs an outline or a shadow, and other elements
# must not cover it completely (WCAG 2.4.7, 2.4.11).
PLACES = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
HIDDEN_FOCUS = """places => [...document.querySelectorAll(places)]
  .filter(it => it.checkVisibility({visibilityProperty: true}) && !it.disabled && it.tabIndex >= 0)
  .filter(it => {
    it.focus();
    if (document.activeElement !== it) return false;
    const box = it.getBoundingClientRect(), style = getComputedStyle(it);
    const points = [.1, .5, .9].flatMap(x => [.1, .5, .9].map(y => [box.x + box.width * x, box.y + box.height * y]));
    const isUncovered = points.some(([x, y]) => {
      const over = document.elementFromPoint(x, y);
      return over && (it === over || it.contains(over) || over.matches("label, label *"));
    });
    const mark = [it, it.nextElementSibling, it.parentElement].filter(Boolean).map(one => getComputedStyle(one));
    const isMarked = mark.some(one => one.boxShadow !== "none" || one.outlineStyle === "auto"
      || (one.outlineStyle !== "none" && parseFloat(one.outlineWidth) >= 2));
    return !isUncovered || !isMarked;
  }).map(it => it.outerHTML.slice(0, 160))"""


def colours(page: Page) -> list[str]:
    """Return the faults with forced colours: parts that are invisible in a light or dark set of colours."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(
            forced_colors="active",
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",  # during a transition, an element has a colour between two states
        )
        found += [f"{scheme}: {it}" for it in page.evaluate(UNSEEN)]
        found += [f"{scheme}: an empty bar of progress"] * _is_blank(page)
    page.emulate_media(forced_colors="none", color_scheme="light", reduced_motion="no-preference")
    return found


def _is_blank(page: Page) -> bool:
    """Return whether the progress bar shows only its background."""
    box = page.evaluate(BAR)
    if not box:
        return False
    picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=box))).convert("RGB")
    return picture.getpixel((picture.width // 8, picture.height // 2)) == picture.getpixel(
        (0, picture.height - 1)
    )


def motion(page: Page) -> list[str]:
    """Return the elements that move or change gradually although the user prefers reduced motion."""
    page.emulate_media(reduced_motion="reduce")
    found = list(page.evaluate(MOVING))
    running = page.evaluate("document.getAnimations().filter(it => it.playState === 'running').length")
    page.emulate_media(reduced_motion="no-preference")
    return found + [f"{running} animations run"] * bool(running)


def reflow(page: Page) -> list[str]:
    """Return the elements that, at 400 % zoom, are cut off, too wide, too small to touch, or hidden while focused."""
    before = page.viewport_size
    page.set_viewport_size(AT_400_PERCENT)
    page.keyboard.press("Tab")  # after this, the browser draws focus outlines
    wide = page.evaluate("document.documentElement.scrollWidth")
    found = [f"{wide} pixels wide"] * (wide > AT_400_PERCENT["width"])
    found += [f"cut: {it}" for it in page.evaluate(CUT)]
    found += [f"hidden: {it}" for it in page.evaluate(HIDDEN_FOCUS, PLACES)]
    found += [f"small: {it}" for it in page.evaluate(TOO_SMALL, MIN_TARGET)]
    page.set_viewport_size(before or AT_400_PERCENT)
    return found


def spacing(page: Page) -> list[str]:
    """Return the elements that are cut off or too wide with the text spacing of WCAG 1.4.12."""
    page.evaluate(
        "css => document.adoptedStyleSheets = [new CSSStyleSheet()].map(it => (it.replaceSync(css), it))",
        APART,
    )
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    found = [f"{wide} pixels too wide"] * (wide > 0) + [f"cut: {it}" for it in page.evaluate(CUT)]
    page.evaluate("document.adoptedStyleSheets = []")
    return found


ALL = {"colours": colours, "motion": motion, "reflow": reflow, "spacing": spacing}


def all_is_well(page: Page) -> None:
    """Run all checks at the width of a phone and of a desktop. Fail if a check finds a fault."""
    page.wait_for_load_state("load")  # right after a click, the page might have no body yet
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 812})
        found = {check: run(page) for check, run in ALL.items()}
        assert not any(found.values()), (width, found)
