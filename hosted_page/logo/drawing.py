"""Draw a logo in two forms: a small mark next to the merchant's name, and a large card for chat previews.

Both forms have their own background, so that a white logo is visible on a white page, and a black one in dark
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
# On white, greys from BRIGHT upwards are invisible. On ink, greys from DARK downwards are invisible.
BRIGHT, DARK = (211, 56)
SOLID = 64  # the alpha value from which a pixel counts as visible
MARK_HEIGHT = 36  # CSS pixels
# The greatest width of a mark, in multiples of its height. It is enough to read a name of a dozen letters.
WIDEST = 2.75
MARK_SCALES = (4, 3, 2)  # image pixels per CSS pixel, sharpest first
MARK_BYTES = 16 * 1024  # bytes; small, because a payer with bad reception waits for the mark
# The space around a logo without its own background, as a fraction of the mark's height.
PADDING = 1 / 9
CARD: Size = (1200, 630)  # pixels; chat apps show this size without cropping it
# In pixels. A logo of this size remains visible if a chat app crops the card to a square in the middle.
CARD_LOGO: Size = (540, 330)
STRIPE, FRAME = 36, 60


@dataclass(frozen=True)
class Drawn:
    """A logo as it is served: its PNG files, and the width of the mark in CSS pixels."""

    mark: bytes
    card: bytes
    width: int


def draw(picture: Image.Image, *, is_test: bool) -> Drawn:
    """Draw a logo from an RGBA picture. If `is_test`, the card says that no real money moves."""
    cut = _crop_edges(picture)
    ground = _choose_background(cut)
    mark = _draw_mark(cut, ground)
    return Drawn(mark, _draw_card(cut, ground, is_test), _mark_width(cut, ground))


def _crop_edges(picture: Image.Image) -> Image.Image:
    """Cut off the transparent edges."""
    return picture.crop(picture.getchannel("A").getbbox())


def _choose_background(picture: Image.Image) -> Colour | None:
    """Return the background colour on which more of the logo is visible.

    Return None if the logo has its own background.
    """
    alpha = picture.getchannel("A")
    if alpha.getextrema()[0] == 255:
        return None
    greys = picture.convert("RGB").convert("L").histogram(alpha.point(lambda value: 255 * (value >= SOLID)))
    return INK if sum(greys[BRIGHT:]) > sum(greys[: DARK + 1]) else WHITE


def _mark_width(picture: Image.Image, ground: Colour | None) -> int:
    """Return the width of a mark in CSS pixels, from the proportions of its picture.

    It is at least the mark's height, and at most WIDEST times that height.
    """
    padding = 0 if ground is None else 2 * round(MARK_HEIGHT * PADDING)
    wide = (MARK_HEIGHT - padding) * picture.width / picture.height + padding
    return round(min(max(wide, MARK_HEIGHT), WIDEST * MARK_HEIGHT))


def _draw_mark(picture: Image.Image, ground: Colour | None) -> bytes:
    """Return the sharpest mark that is not larger than MARK_BYTES, or else the smallest one."""
    for scale in MARK_SCALES:
        size = (_mark_width(picture, ground) * scale, MARK_HEIGHT * scale)
        padding = 0 if ground is None else round(MARK_HEIGHT * PADDING) * scale
        drawn = Image.new("RGB", size, ground or _corner_colour(picture))
        _paste_centred(drawn, picture, (size[0] - 2 * padding, size[1] - 2 * padding))
        few = drawn.quantize(256)
        for colours in (few,) if drawn.getcolors(256) else (drawn, few):
            written = _write_png(colours)
            if len(written) <= MARK_BYTES:
                return written
    return written


def _draw_card(picture: Image.Image, ground: Colour | None, is_test: bool) -> bytes:
    """Return the PNG that chat apps show with a link. It shows only the logo.

    In test mode, the card has a frame of stripes and the word TEST.
    """
    card = Image.new("RGB", CARD, ground or PAPER)
    if is_test:
        _draw_stripe(card, ground or PAPER)
    _paste_centred(card, picture, CARD_LOGO)
    return _write_png(card.quantize(256))


def _draw_stripe(card: Image.Image, ground: Colour) -> None:
    wide, high = CARD
    pen = ImageDraw.Draw(card)
    pen.rectangle((0, 0, wide, high), fill=INK)
    for left in range(-high, wide, 2 * STRIPE):
        pen.polygon(
            [(left, high), (left + STRIPE, high), (left + STRIPE + high, 0), (left + high, 0)], fill=YELLOW
        )
    pen.rectangle((FRAME, FRAME, wide - FRAME - 1, high - FRAME - 1), fill=ground)
    pen.rectangle((FRAME, high - FRAME - 96, FRAME + 248, high - FRAME - 1), fill=INK)
    font = ImageFont.load_default(56)
    for place, letter in enumerate("TEST"):
        at = (FRAME + 55 + place * 46, high - FRAME - 48)
        pen.text(at, letter, fill=YELLOW, font=font, anchor="mm", stroke_width=1)


def _paste_centred(drawn: Image.Image, picture: Image.Image, room: Size) -> None:
    """Paste a picture into the middle, as large as `room` allows."""
    scale = min(room[0] / picture.width, room[1] / picture.height)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    fitting = picture.resize(size, Image.Resampling.LANCZOS)
    drawn.paste(fitting, ((drawn.width - size[0]) // 2, (drawn.height - size[1]) // 2), fitting)


def _corner_colour(picture: Image.Image) -> Colour:
    red, green, blue = picture.convert("RGB").resize((1, 1), box=(0, 0, 1, 1)).tobytes()
    return (red, green, blue)


def _write_png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return file.getvalue()
