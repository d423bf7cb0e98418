"""QR codes as SVG images."""

import io

import segno


def svg(url: str) -> bytes:
    """Return a URL's QR code: always black on white, with the margin (quiet zone) that cameras need."""
    drawn = io.BytesIO()
    colours = {"light": "#fff", "dark": "#000"}
    segno.make(url, error="m").save(drawn, kind="svg", border=4, omitsize=True, xmldecl=False, **colours)
    return drawn.getvalue()
