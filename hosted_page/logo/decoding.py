"""Reads an uploaded logo: a PNG or JPEG, of which nothing but the picture itself goes on. Rule brand.logo_read."""

import io

import structlog
from PIL import Image, ImageFile, ImageOps, JpegImagePlugin, PngImagePlugin

MAX_BYTES = 256 * 1024
MIN_SIDE, MAX_SIDE = 32, 1024  # pixels
MAX_SCANS = 100  # of a JPEG: each is a walk over the whole picture, and costs its sender a few bytes
PNG, JPEG, SCAN = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\xff\xda"
# What a PNG carries beside its picture is unpacked before anything can be asked: no more than it may weigh packed.
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = MAX_BYTES
log = structlog.get_logger("hosted_page.logo")


class Unusable(Exception):
    """What was uploaded can't be a logo. The message is a sentence that says what to do."""


def decode(content: bytes) -> Image.Image:
    """Return the picture in an upload as RGBA, upright, without anything else that the file holds. Raises Unusable."""
    if len(content) > MAX_BYTES or not content.startswith((PNG, JPEG)):
        raise Unusable("Use a PNG or JPEG of at most 256 KB.")
    try:
        found = _opened(content)
        _measure(found)
        picture = _plain(found)
    except Unusable:
        raise
    except Exception as error:  # a decoder fails at what is broken in whichever way it happens to notice
        log.info("logo_not_read", error=type(error).__name__)
        raise Unusable("This picture is damaged. Save it anew as a PNG or JPEG.") from None
    if picture.getchannel("A").getextrema()[1] == 0:
        raise Unusable("This picture is empty. Use one in which something can be seen.")
    return picture


def _opened(content: bytes) -> ImageFile.ImageFile:
    """Open a file by its first bytes, with no decoder but these two: its header is read, no pixel yet."""
    if content.startswith(PNG):
        return PngImagePlugin.PngImageFile(io.BytesIO(content))
    if content.count(SCAN) > MAX_SCANS:
        raise Unusable("Save this JPEG anew, not progressive, or use a PNG.")
    return JpegImagePlugin.JpegImageFile(io.BytesIO(content))


def _measure(found: ImageFile.ImageFile) -> None:
    """Refuse what its header says is too large, too small, or moves."""
    wide, high = found.size
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in found.size):
        raise Unusable(
            f"Use a picture of {MIN_SIDE} to {MAX_SIDE:,} pixels a side. This one has {wide:,} by {high:,}."
        )
    if getattr(found, "is_animated", False):
        raise Unusable("Use a picture that does not move.")


def _plain(found: ImageFile.ImageFile) -> Image.Image:
    upright: Image.Image = ImageOps.exif_transpose(found)
    if upright.mode.startswith("I"):  # grey of 16 bits, of which a conversion would keep the darkest 256th
        upright = upright.point(lambda shade: shade / 256).convert("L")
    picture = upright.convert("RGBA")
    picture.info = {}
    return picture
