"""The images that the service draws from a logo: for the merchant's name on pages, and for previews in chat apps."""

import pytest
from PIL import Image

from hosted_page.logo import decoding, drawing
from hosted_page.logo.drawing import INK, PAPER, WHITE, YELLOW, Drawn
from tests.hosted_page.logo import files


def draw(content: bytes, *, is_test: bool = False) -> Drawn:
    return drawing.draw(decoding.decode(content), is_test=is_test)


def corner(png: bytes) -> tuple[int, int, int]:
    return files.pixel(png, (2, 2))


def middle(png: bytes) -> tuple[int, int, int]:
    wide, high = files.size(png)
    return files.pixel(png, (wide // 2, high // 2))


@pytest.mark.rule("brand.logo_seen")
class TestBackground:
    @pytest.mark.parametrize(
        ("colour", "ground"),
        [("white", INK), ("#eee", INK), ("black", WHITE), ("#A61C59", WHITE), ("#888", WHITE)],
    )
    def test_contrasts_with_the_logo(self, colour: str, ground: tuple[int, int, int]) -> None:
        drawn = draw(files.logo(colour))
        assert corner(drawn.mark) == corner(drawn.card) == ground
        assert middle(drawn.mark) != ground

    def test_contrasts_with_the_larger_part_of_a_two_coloured_logo(self) -> None:
        picture = files.disc("white")
        picture.paste((0, 0, 0, 255), (90, 90, 110, 110))
        assert corner(draw(files.written(picture)).mark) == INK

    def test_is_the_logos_own_background_if_it_has_one(self) -> None:
        drawn = draw(files.written(Image.new("RGB", (100, 100), "#A61C59")))
        assert corner(drawn.mark) == middle(drawn.mark) == (166, 28, 89)
        assert corner(drawn.card) == PAPER

    def test_of_a_narrow_picture_continues_its_own_colour(self) -> None:
        drawn = draw(files.written(Image.new("RGB", (50, 400), "#A61C59")))
        assert drawn.width == 36 and corner(drawn.mark) == (166, 28, 89)


class TestMark:
    @pytest.mark.parametrize(
        ("size", "width"),
        [((100, 100), 36), ((50, 1000), 36), ((150, 100), 50), ((1000, 50), 99), ((200, 100), 64)],
    )
    def test_is_as_wide_as_its_picture_within_bounds(self, size: tuple[int, int], width: int) -> None:
        drawn = draw(files.logo(size=size))
        assert drawn.width == width
        assert files.size(drawn.mark) == (4 * width, 4 * 36)

    def test_has_no_empty_edges(self) -> None:
        wide = Image.new("RGBA", (600, 200), files.CLEAR)
        wide.paste(files.disc("black", (100, 100)), (20, 20))
        assert draw(files.written(wide)).width == 36

    @pytest.mark.parametrize("size", [(300, 150), (150, 150)])
    def test_is_a_small_file_for_any_picture(self, size: tuple[int, int]) -> None:
        noise = draw(files.written(files.noise(size)))
        assert len(noise.mark) <= drawing.MARK_BYTES
        assert len(noise.card) < 300 * 1024, "chats take no larger ones"


@pytest.mark.rule("brand.logo")
class TestCard:
    def test_is_striped_and_labelled_only_in_test_mode(self) -> None:
        content = files.logo("black")
        live, test = draw(content).card, draw(content, is_test=True).card
        assert files.size(live) == files.size(test) == (1200, 630)
        edge = {files.pixel(test, (x, 10)) for x in range(0, 1200, 4)}
        assert {INK, YELLOW} <= edge and {files.pixel(live, (x, 10)) for x in range(0, 1200, 4)} == {WHITE}
        below = {files.pixel(test, (x, 522)) for x in range(70, 300)}
        assert {INK, YELLOW} <= below, "TEST"
        assert middle(live) == middle(test) == (0, 0, 0)

    def test_shows_the_logo_whole_in_the_square_that_some_chats_cut_out(self) -> None:
        card = draw(files.written(Image.new("RGB", (1000, 100), "black"))).card
        assert files.pixel(card, (600 - 325, 315)) == PAPER != files.pixel(card, (600 - 260, 315))
