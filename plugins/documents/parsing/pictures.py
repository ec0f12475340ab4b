"""Pictures for a model that reads them: JPEG, of moderate size, one for an image file and one for
each page of a PDF that is asked for.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from PIL import Image

from .extraction import ParseFailed
from .formats import PDF
from .limits import PICTURE_PIXELS_MAX, PICTURE_SIDE_PIXELS_MAX
from .pdf import open_pdf

_FORMATS = ("PNG", "JPEG", "WEBP")
_QUALITY = 85
Image.MAX_IMAGE_PIXELS = None  # our own bound stands below


def show(file: BinaryIO, media_type: str, pages: list[int]) -> list[bytes]:
    """One JPEG for each page (from 1); an image file has one. Raises ParseFailed."""
    if media_type != PDF:
        return [_as_jpeg(_opened(file))]
    document = open_pdf(file)
    images = []
    for number in pages:
        page = document[number - 1]
        images.append(_as_jpeg(_drawn(page)))
        page.close()
    return images


def _drawn(page: Any) -> Image.Image:
    scale = min(3.0, PICTURE_SIDE_PIXELS_MAX / max(*page.get_size(), 1))
    return page.render(scale=scale).to_pil()


def _opened(file: BinaryIO) -> Image.Image:
    try:
        picture = Image.open(file, formats=_FORMATS)
        if picture.width * picture.height > PICTURE_PIXELS_MAX:
            raise ParseFailed(
                "too_large_to_parse", f"The picture has more than {PICTURE_PIXELS_MAX} pixels."
            )
        picture.load()
    except (OSError, SyntaxError, ValueError):
        raise ParseFailed(
            "damaged", "The file is not a readable picture; it is cut short or damaged."
        ) from None
    return picture


def _as_jpeg(picture: Image.Image) -> bytes:
    picture.thumbnail((PICTURE_SIDE_PIXELS_MAX, PICTURE_SIDE_PIXELS_MAX))
    out = io.BytesIO()
    picture.convert("RGB").save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
