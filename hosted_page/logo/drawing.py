"""Draws a logo in two forms: a small mark next to the merchant's name, and a large card for chat previews.

Each form has its own background, so that a white logo can be seen on a white page, and a black one in dark
mode. Rule brand.logo_seen.
"""

import io
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Size = tuple[int, int]

WHITE, INK, PAPER, YELLOW = (
    (255, 255, 255),
    (20, 27, 23),
    (243, 245, 240),
    (255, 210, 31),
)  # the same values as in tokens.css
# On white, greys of BRIGHT or more are invisible. On the dark ink colour, greys of DARK or less are invisible.
BRIGHT, DARK = (211, 56)
SOLID = 64  # a pixel with at least this alpha value counts as visible
MARK_HEIGHT = 36  # CSS pixels
# The greatest width of a mark, in multiples of its height. A name of twelve letters is readable at this width.
WIDEST = 2.75
MARK_SCALES = (4, 3, 2)  # image pixels per CSS pixel, sharpest first
MARK_BYTES = 16 * 1024  # bytes; small, because a payer with a bad connection waits for the mark
# The space around a logo without its own background, as a fraction of the mark's height.
PADDING = 1 / 9
CARD: Size = (1200, 630)  # pixels; chat apps show this size without cropping it
# In pixels. If a chat app crops the card to a square from its middle, a logo of this size is still visible.
CARD_LOGO: Size = (540, 330)
STRIPE, FRAME = 36, 60


@dataclass(frozen=True)
class Drawn:
    """A logo as the service delivers it: its PNG files, and the width of the mark in CSS pixels."""

    mark: bytes
    card: bytes
    width: int


def draw(picture: Image.Image, *, is_test: bool) -> Drawn:
    """Draw a logo from an RGBA picture. If `is_test` is true, the card says that no real money moves."""
    cropped = picture.crop(picture.getchannel("A").getbbox())  # without its transparent edges
    background = _choose_background(cropped)
    mark = _draw_mark(cropped, background)
    return Drawn(mark, _draw_card(cropped, background, is_test), _mark_width(cropped, background))


def _choose_background(picture: Image.Image) -> Colour | None:
    """Return the background colour on which more of the logo is visible.

    Return None if the logo has its own background.
    """
    alpha = picture.getchannel("A")
    if alpha.getextrema()[0] == 255:
        return None
    histogram = (
        picture.convert("RGB").convert("L").histogram(alpha.point(lambda value: 255 * (value >= SOLID)))
    )
    return INK if sum(histogram[BRIGHT:]) > sum(histogram[: DARK + 1]) else WHITE


def _mark_width(picture: Image.Image, background: Colour | None) -> int:
    """Return the width of a mark in CSS pixels, which keeps the proportions of its picture.

    The width is at least the mark's height, and at most WIDEST times the height.
    """
    padding = 0 if background is None else 2 * round(MARK_HEIGHT * PADDING)
    width = (MARK_HEIGHT - padding) * picture.width / picture.height + padding
    return round(min(max(width, MARK_HEIGHT), WIDEST * MARK_HEIGHT))


def _draw_mark(picture: Image.Image, background: Colour | None) -> bytes:
    """Return the sharpest mark of at most MARK_BYTES. If every mark is larger, return the smallest one."""
    for scale in MARK_SCALES:
        size = (_mark_width(picture, background) * scale, MARK_HEIGHT * scale)
        padding = 0 if background is None else round(MARK_HEIGHT * PADDING) * scale
        mark = Image.new("RGB", size, background or _corner_colour(picture))
        _paste_centred(mark, picture, (size[0] - 2 * padding, size[1] - 2 * padding))
        reduced = mark.quantize(256)
        for image in (reduced,) if mark.getcolors(256) else (mark, reduced):
            png = _write_png(image)
            if len(png) <= MARK_BYTES:
                return png
    return png


def _draw_card(picture: Image.Image, background: Colour | None, is_test: bool) -> bytes:
    """Return the PNG that chat apps show with a link. It shows only the logo.

    In test mode, the card also has a striped frame and the word TEST.
    """
    card = Image.new("RGB", CARD, background or PAPER)
    if is_test:
        _draw_stripe(card, background or PAPER)
    _paste_centred(card, picture, CARD_LOGO)
    return _write_png(card.quantize(256))


def _draw_stripe(card: Image.Image, background: Colour) -> None:
    width, height = CARD
    pen = ImageDraw.Draw(card)
    pen.rectangle((0, 0, width, height), fill=INK)
    for x in range(-height, width, 2 * STRIPE):
        pen.polygon(
            [(x, height), (x + STRIPE, height), (x + STRIPE + height, 0), (x + height, 0)], fill=YELLOW
        )
    pen.rectangle((FRAME, FRAME, width - FRAME - 1, height - FRAME - 1), fill=background)
    pen.rectangle((FRAME, height - FRAME - 96, FRAME + 248, height - FRAME - 1), fill=INK)
    font = ImageFont.load_default(56)
    for index, letter in enumerate("TEST"):
        position = (FRAME + 55 + index * 46, height - FRAME - 48)
        pen.text(position, letter, fill=YELLOW, font=font, anchor="mm", stroke_width=1)


def _paste_centred(canvas: Image.Image, picture: Image.Image, max_size: Size) -> None:
    """Paste a picture into the middle, as large as `max_size` allows."""
    scale = min(max_size[0] / picture.width, max_size[1] / picture.height)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    resized = picture.resize(size, Image.Resampling.LANCZOS)
    canvas.paste(resized, ((canvas.width - size[0]) // 2, (canvas.height - size[1]) // 2), resized)


def _corner_colour(picture: Image.Image) -> Colour:
    red, green, blue = picture.convert("RGB").resize((1, 1), box=(0, 0, 1, 1)).tobytes()
    return (red, green, blue)


def _write_png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return file.getvalue()
