"""Files that the tests upload as logos."""

import io
import os
import struct
import zlib
from typing import Any

from PIL import Image, ImageDraw, ImageFont

Size = tuple[int, int]
CLEAR = (0, 0, 0, 0)


def written(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def disc(colour: str, size: Size = (200, 200)) -> Image.Image:
    """Return a disc of this colour on a transparent background."""
    picture = Image.new("RGBA", size, CLEAR)
    ImageDraw.Draw(picture).ellipse((0, 0, size[0] - 1, size[1] - 1), fill=colour)
    return picture


def logo(colour: str = "#A61C59", size: Size = (200, 200)) -> bytes:
    return written(disc(colour, size))


def word(words: str, colour: str) -> bytes:
    """Return a PNG with a text in this colour on a transparent background."""
    picture = Image.new("RGBA", (1024, 200), CLEAR)
    pen = ImageDraw.Draw(picture)
    pen.text((20, 100), words, fill=colour, font=ImageFont.load_default(90), anchor="lm", stroke_width=3)
    return written(picture)


def noise(size: Size) -> Image.Image:
    """Return a picture of random pixels, which hardly become smaller when compressed."""
    return Image.frombytes("RGB", size, os.urandom(size[0] * size[1] * 3))


def moving() -> bytes:
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "green")]
    return written(frames[0], save_all=True, append_images=frames[1:])


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def claiming(wide: int, high: int) -> bytes:
    """Return a small PNG file whose header states this width and height."""
    header = struct.pack(">IIBBBBB", wide, high, 8, 6, 0, 0, 0)
    rows = zlib.compress(b"\0" * (4 * 64 + 1) * 64)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", rows), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def with_text(unpacked: int, pieces: int = 1) -> bytes:
    """Return a logo that also contains `pieces` compressed texts. Each has `unpacked` bytes before compression."""
    words = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"a" * unpacked))
    whole = logo()
    at = whole.index(b"IDAT") - 4
    return whole[:at] + words * pieces + whole[at:]


def grey(shade: int) -> bytes:
    """Return a PNG in which every pixel has the same shade of 16-bit grey."""
    return written(Image.new("I;16", (64, 64), shade))


def pixel(png: bytes, at: tuple[int, int]) -> tuple[int, int, int]:
    found = Image.open(io.BytesIO(png)).convert("RGB").getpixel(at)
    assert isinstance(found, tuple)
    return (found[0], found[1], found[2])


def size(png: bytes) -> Size:
    return Image.open(io.BytesIO(png)).size
