"""How uploaded logos are decoded: which files the service accepts, and which it refuses without decoding them."""

import io
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from hosted_page.logo import decoding
from hosted_page.logo.decoding import Unusable, decode
from tests.hosted_page.logo import files

pytestmark = pytest.mark.rule("brand.logo_read")
KIND = "Use a PNG or JPEG of at most 256 KB."
DAMAGED = "This picture is damaged. Save it again as a PNG or JPEG."
# The colour that red (255, 0, 0) has after JPEG compression.
RED = (254, 0, 0)


def refused(content: bytes) -> str:
    with pytest.raises(Unusable) as told:
        decode(content)
    return str(told.value)


def turned() -> bytes:
    """Return a JPEG whose Exif data contains a rotation by 90 degrees, and the maker of the camera."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Lea's phone"
    return files.written(Image.new("RGB", (200, 100), "red"), "JPEG", exif=exif)


class TestAcceptedLogo:
    @pytest.mark.parametrize(
        ("content", "colour"),
        [
            (files.written(Image.new("RGB", (64, 64), (10, 20, 30))), (10, 20, 30, 255)),
            (files.written(Image.new("RGBA", (64, 64), (10, 20, 30, 128))), (10, 20, 30, 128)),
            (files.written(Image.new("L", (64, 64), 77)), (77, 77, 77, 255)),
            (files.written(Image.new("LA", (64, 64), (77, 9))), (77, 77, 77, 9)),
            (files.written(Image.new("1", (64, 64), 1)), (255, 255, 255, 255)),
            (files.written(files.disc("#A61C59").quantize(16)), (0, 0, 0, 0)),
            (files.written(Image.new("RGB", (64, 64), "red"), transparency=(255, 0, 0)), None),
            (files.grey(0x8000), (128, 128, 128, 255)),
            (files.written(Image.new("RGB", (64, 64), "red"), "JPEG"), (*RED, 255)),
            (files.written(Image.new("RGB", (64, 64), "red"), "JPEG", progressive=True), (*RED, 255)),
            (files.written(Image.new("CMYK", (64, 64), (0, 255, 255, 0)), "JPEG"), (*RED, 255)),
            (files.written(Image.new("L", (64, 64), 77), "JPEG"), (77, 77, 77, 255)),
        ],
        ids=[
            "rgb",
            "rgba",
            "l",
            "la",
            "one",
            "palette",
            "keyed",
            "grey16",
            "jpeg",
            "progressive",
            "cmyk",
            "grey",
        ],
    )
    def test_can_be_any_kind_of_png_or_jpeg(self, content: bytes, colour: Any) -> None:
        if colour is None:
            assert refused(content).startswith("This picture is empty"), "all of it is the clear colour"
            return
        picture = decode(content)
        assert picture.mode == "RGBA"
        found = picture.getpixel((0, 0))
        assert isinstance(found, tuple)
        assert all(abs(one - other) <= 2 for one, other in zip(found, colour, strict=True)), found

    def test_is_rotated_upright_and_loses_its_metadata(self) -> None:
        picture = decode(turned())
        assert picture.size == (100, 200) and picture.info == {}
        assert b"Lea" not in files.written(picture)
        named = PngImagePlugin.PngInfo()
        named.add_text("Author", "Lea")
        assert decode(files.written(files.disc("red"), pnginfo=named)).info == {}

    @pytest.mark.parametrize("side", [decoding.MIN_SIDE, decoding.MAX_SIDE])
    def test_can_have_the_minimum_or_maximum_size(self, side: int) -> None:
        assert decode(files.logo(size=(side, side))).size == (side, side)


class TestRefusedLogo:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            files.written(Image.new("RGB", (64, 64)), "GIF"),
            files.written(Image.new("RGB", (64, 64)), "BMP"),
            files.written(Image.new("RGB", (64, 64)), "TIFF"),
            files.written(Image.new("RGB", (64, 64)), "WEBP"),
            b"%!PS-Adobe-3.0 EPSF-3.0",
            files.logo() + b"\0" * decoding.MAX_BYTES,
        ],
        ids=["nothing", "svg", "gif", "bmp", "tiff", "webp", "eps", "large"],
    )
    def test_is_of_another_kind_or_too_large(self, content: bytes) -> None:
        assert refused(content) == KIND

    @pytest.mark.parametrize(
        "content",
        [
            files.logo()[:200],
            files.logo()[:8],
            b"\xff\xd8\xff\xe0" + b"\0" * 500,
            files.written(files.noise((200, 200)), "JPEG")[:400],
            files.logo().replace(b"IDAT", b"IDAX"),
            files.claiming(64, 64)[:-30],
            files.written(Image.new("RGB", (64, 64)), "JPEG")[:3] + b"\xff" * 300,
        ],
        ids=["cut", "signature", "junk", "jpeg_cut", "chunk", "tail", "ones"],
    )
    def test_is_damaged(self, content: bytes) -> None:
        assert refused(content) == DAMAGED

    @pytest.mark.parametrize(
        "claimed", [(1025, 64), (64, 1025), (50_000, 50_000), (2**31 - 1, 2**31 - 1), (31, 64)]
    )
    def test_claims_too_many_pixels_and_is_not_decoded(
        self, claimed: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def decoded(*_: Any) -> None:
            raise AssertionError("Somebody decodes it.")

        monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", decoded)
        said = refused(files.claiming(*claimed))
        assert said.startswith("Use a picture of 32 to 1,024 pixels a side.") and f"{claimed[0]:,}" in said

    def test_is_animated(self) -> None:
        assert refused(files.moving()) == "Use a picture that does not move."

    def test_is_empty(self) -> None:
        empty = files.written(Image.new("RGBA", (64, 64), (255, 0, 0, 0)))
        assert refused(empty).startswith("This picture is empty.")

    @pytest.mark.parametrize(("unpacked", "pieces"), [(50_000_000, 1), (200_000, 40)])
    def test_unpacks_to_much_more_than_its_size(self, unpacked: int, pieces: int) -> None:
        content = files.with_text(unpacked, pieces)
        assert len(content) < decoding.MAX_BYTES and refused(content) == DAMAGED

    def test_is_a_jpeg_with_too_many_scans(self) -> None:
        whole = files.written(files.noise((1024, 64)), "JPEG", progressive=True, quality=20)
        at = whole.rindex(b"\xff\xda")
        scans = whole[:-2] + whole[at:-2] * 200
        assert len(scans) > decoding.MAX_BYTES or refused(scans).startswith("Save this JPEG again")
        assert refused(whole[: decoding.MAX_BYTES // 2] + decoding.SCAN * 101).startswith(
            "Save this JPEG again"
        )

    def test_is_never_decoded_as_another_kind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def opened(*_: Any, **__: Any) -> None:
            raise AssertionError("A decoder is guessed.")

        monkeypatch.setattr(Image, "open", opened)
        assert decode(files.logo()).size == (200, 200)
        several = io.BytesIO()
        frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "green")]
        frames[0].save(several, "MPO", save_all=True, append_images=frames[1:])
        assert decode(several.getvalue()).getpixel((0, 0)) == (*RED, 255), "the first of several pictures"
