"""Decodes an uploaded logo. Only the picture itself is taken from the PNG or JPEG (rule brand.logo_read)."""

import io

import structlog
from PIL import Image, ImageFile, ImageOps, JpegImagePlugin, PngImagePlugin

MAX_BYTES = 256 * 1024
MIN_SIDE, MAX_SIDE = 32, 1024  # pixels
# The maximum number of scans in a JPEG. For every scan, even a tiny one, the decoder processes the whole picture.
MAX_SCANS = 100
PNG, JPEG, SCAN = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\xff\xda"
# Pillow decompresses the text chunks of a PNG while it opens the file, before the service can check them. The limit for
# the decompressed text is therefore the limit for a whole file.
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = MAX_BYTES
log = structlog.get_logger("hosted_page.logo")


class Unusable(Exception):
    """The upload cannot be a logo. The message is a sentence that says what the merchant must change."""


def decode(content: bytes) -> Image.Image:
    """Return the picture in an upload as RGBA, upright and without metadata. Raises Unusable."""
    if len(content) > MAX_BYTES or not content.startswith((PNG, JPEG)):
        raise Unusable("Use a PNG or JPEG of at most 256 KB.")
    try:
        opened = _open_picture(content)
        _check_size(opened)
        picture = _without_metadata(opened)
    except Unusable:
        raise
    except Exception as error:  # a decoder can raise any exception for a damaged file
        log.info("logo_not_read", error=type(error).__name__)
        raise Unusable("This picture is damaged. Save it again as a PNG or JPEG.") from None
    if picture.getchannel("A").getextrema()[1] == 0:
        raise Unusable("This picture is empty. Use one in which something can be seen.")
    return picture


def _open_picture(content: bytes) -> ImageFile.ImageFile:
    """Open a file with the PNG or JPEG decoder, and read only its header.

    The first bytes of the file decide which decoder is used. Pillow's other decoders are never used.
    """
    if content.startswith(PNG):
        return PngImagePlugin.PngImageFile(io.BytesIO(content))
    if content.count(SCAN) > MAX_SCANS:
        raise Unusable("Save this JPEG again, not progressive, or use a PNG.")
    return JpegImagePlugin.JpegImageFile(io.BytesIO(content))


def _check_size(picture: ImageFile.ImageFile) -> None:
    """Raise Unusable if the header says that the picture is too large, too small, or animated."""
    width, height = picture.size
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in picture.size):
        raise Unusable(
            f"Use a picture of {MIN_SIDE} to {MAX_SIDE:,} pixels a side. This one has {width:,} by {height:,}."
        )
    if getattr(picture, "is_animated", False):
        raise Unusable("Use a picture that does not move.")


def _without_metadata(picture: ImageFile.ImageFile) -> Image.Image:
    upright: Image.Image = ImageOps.exif_transpose(picture)
    # A direct conversion of 16-bit greyscale replaces all values above 255 by 255, so that most of the
    # picture becomes white. The values are therefore divided first.
    if upright.mode.startswith("I"):
        upright = upright.point(lambda shade: shade / 256).convert("L")
    result = upright.convert("RGBA")
    result.info = {}
    return result
