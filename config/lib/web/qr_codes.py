"""QR codes as SVG."""

import io

import segno


def svg(url: str) -> bytes:
    """Return the QR code of a URL: always black on white, with the quiet zone that cameras need."""
    drawn = io.BytesIO()
    colours = {"light": "#fff", "dark": "#000"}
    segno.make(url, error="m").save(drawn, kind="svg", border=4, omitsize=True, xmldecl=False, **colours)
    return drawn.getvalue()
