"""Builds the merchant's style sheet: design tokens, the brand colour, and the colours derived from it.

The derived colours have the same values that tokens.css calculates. They are written as hex values, for
browsers that cannot calculate colours in CSS.
"""

import re
from collections.abc import Iterable
from hashlib import sha256

from django.conf import settings

# The tokens and the merchant's colour are in one style sheet. With a second sheet, a payer with a bad
# connection would wait for another request before the page appears.
# Comments and unneeded spaces are removed, because a proxy might not compress the sheet.
_COMMENT = re.compile(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/")
_SPACED = re.compile(r" ?([{};,]) ?")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
_WRITTEN = (settings.BASE_DIR / "static" / "css" / "tokens.css").read_text()
TOKENS = _SPACED.sub(r"\1", " ".join(_COMMENT.sub("", _WRITTEN).split())).replace(": ", ":")
PAPER = "#F3F5F0"
TOKENS_VERSION = sha256(TOKENS.encode()).hexdigest()[:12]

Triple = tuple[float, float, float]

_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_LMS = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)


def is_colour(text: str) -> bool:
    """Return whether the text is a colour of six hexadecimal digits, such as "#A61C59"."""
    return _COLOUR.fullmatch(text) is not None


def sheet(brand: str) -> str:
    """Return the style sheet with the design tokens and a merchant's colour, such as "#A61C59"."""
    values = {"--brand": brand, **properties(brand)}
    return f"{TOKENS}\n:root{{{''.join(f'{name}:{value};' for name, value in values.items())}}}\n"


def properties(brand: str) -> dict[str, str]:
    """Return the custom properties that a merchant's sheet sets in addition to --brand.

    `brand` is a colour such as "#A61C59".
    """
    rgb = _parse_colour(brand)
    light_fill = _make_readable(rgb)
    raised = _raise_lightness(rgb, 0.92 if _chroma_of(rgb) < 0.03 else 0.56)
    dark_fill = _make_readable(raised)
    dark_band = _with_lightness(rgb, min(max(_lightness_of(rgb), 0.3), 0.4), max_chroma=0.14)
    return {
        "--brand-fill-light": _write_hex(light_fill),
        "--on-brand-light": _ink_on(light_fill),
        "--brand-line-light": _write_hex(_with_lightness(rgb, min(_lightness_of(rgb), 0.58))),
        "--brand-fill-dark": _write_hex(dark_fill),
        "--on-brand-dark": _ink_on(dark_fill),
        "--brand-band-dark": _write_hex(dark_band),
        "--on-band-dark": _ink_on(dark_band),
        "--brand-line-dark": _write_hex(_raise_lightness(raised, 0.66)),
    }


def is_darkened(brand: str) -> bool:
    """Return whether the colour must be darkened because neither white nor black text is readable on it."""
    rgb = _parse_colour(brand)
    return _make_readable(rgb) != rgb


def is_faint(brand: str) -> bool:
    """Return whether the colour's contrast with the page background in light mode is below 1.3 to 1."""
    return (_luminance_of(_parse_colour(PAPER)) + 0.05) / (_luminance_of(_parse_colour(brand)) + 0.05) < 1.3


def _make_readable(rgb: Triple) -> Triple:
    """Return the linear RGB colour, darkened if neither white nor black text is readable on it.

    Neither is readable if the luminance is between 0.178 and 0.26.
    """
    luminance = _luminance_of(rgb)
    factor = 0.178 / luminance if 0.178 < luminance < 0.26 else 1.0
    return (rgb[0] * factor, rgb[1] * factor, rgb[2] * factor)


def _ink_on(rgb: Triple) -> str:
    return "#ffffff" if _luminance_of(rgb) < 0.179 else "#000000"


def _raise_lightness(rgb: Triple, minimum: float) -> Triple:
    return _with_lightness(rgb, max(_lightness_of(rgb), minimum))


def _with_lightness(rgb: Triple, lightness: float, max_chroma: float = 1.0) -> Triple:
    _, a, b = _to_oklab(rgb)
    chroma = _chroma_of(rgb)
    scale = min(chroma, max_chroma) / chroma if chroma else 0.0
    lms = _multiply(_FROM_LAB, (lightness, a * scale, b * scale))
    red, green, blue = _multiply(_FROM_LMS, (lms[0] ** 3, lms[1] ** 3, lms[2] ** 3))
    return (min(max(red, 0.0), 1.0), min(max(green, 0.0), 1.0), min(max(blue, 0.0), 1.0))


def _to_oklab(rgb: Triple) -> Triple:
    long, medium, short = _multiply(_TO_LMS, rgb)
    return _multiply(_TO_LAB, (long ** (1 / 3), medium ** (1 / 3), short ** (1 / 3)))


def _lightness_of(rgb: Triple) -> float:
    return _to_oklab(rgb)[0]


def _chroma_of(rgb: Triple) -> float:
    _, a, b = _to_oklab(rgb)
    return float((a * a + b * b) ** 0.5)


def _luminance_of(rgb: Triple) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def _multiply(rows: Iterable[Triple], vector: Triple) -> Triple:
    first, second, third = (sum(x * y for x, y in zip(row, vector, strict=True)) for row in rows)
    return (first, second, third)


def _parse_colour(brand: str) -> Triple:
    """Return the linear RGB values of a colour such as "#A61C59", each from 0 to 1."""
    red, green, blue = (_to_linear(int(brand[start : start + 2], 16) / 255) for start in (1, 3, 5))
    return (red, green, blue)


def _write_hex(rgb: Triple) -> str:
    return "#" + "".join(f"{round(_to_gamma(channel) * 255):02x}" for channel in rgb)


def _to_linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _to_gamma(channel: float) -> float:
    return channel * 12.92 if channel <= 0.0031308 else float(1.055 * channel ** (1 / 2.4) - 0.055)
