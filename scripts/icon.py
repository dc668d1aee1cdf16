"""Draws the icon's picture for programs that take no SVG: python scripts/icon.py [DIRECTORY].

The drawing is `src/aiaml_server/web/static/icon.svg`. Each package has the picture in its own
directory, because hosts install that alone. Needs the development dependencies and a Chromium.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium  # noqa: E402

DRAWING = "src/aiaml_server/web/static/icon.svg"
PICTURES = ("mcpb/icon.png", "plugin/assets/icon.png")
SIZE = 512  # pixels, what Claude Desktop asks for; the others want less


def address(path: Path) -> str:
    """Return a picture's `data:` address."""
    kind = {".svg": "svg+xml", ".png": "png"}[path.suffix]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def picture() -> bytes:
    """Return the drawing as PNG, transparent around it."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": SIZE, "height": SIZE})
        image = f'<img src="{address(ROOT / DRAWING)}" width="{SIZE}" height="{SIZE}">'
        page.set_content(f"<style>body {{ margin: 0 }}</style>{image}")
        return page.screenshot(omit_background=True)


def main() -> None:
    """Write the picture to each of its places."""
    drawn = picture()
    for name in PICTURES:
        path = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(drawn)


if __name__ == "__main__":
    main()
