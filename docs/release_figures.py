"""Draws the five figures of docs/figures.md, those of the DHC file: python docs/release_figures.py (needs exactdp[plots])."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image, PngImagePlugin

from exactdp.apps.figures.captions import captions
from exactdp.apps.figures.release import all_figures
from exactdp.census.built_in import release

IMAGES = Path(__file__).parent / "images"
DHC = release("dhc-persons-us")
TEXTS = captions(DHC, DHC.full_path, DHC.proxy_pair)


def main() -> None:
    """Write docs/images/figure1.png to figure5.png."""
    figures = all_figures(DHC.account(), DHC.full_path)
    for number, (figure, text) in enumerate(zip(figures, TEXTS, strict=True), start=1):
        drawn, caption = io.BytesIO(), PngImagePlugin.PngInfo()
        figure.savefig(drawn, dpi=110, format="png")
        caption.add_text("Description", text)
        small = Image.open(drawn).convert("RGB").quantize(96, dither=Image.Dither.NONE)
        small.save(IMAGES / f"figure{number}.png", optimize=True, pnginfo=caption)


if __name__ == "__main__":
    main()
