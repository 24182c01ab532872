"""Draw a terminal's text as an SVG picture for the README: real output, nothing made up.

usage: python docs/cast.py TITLE < transcript.txt > docs/images/NAME.svg
"""

from __future__ import annotations

import io
import re
import sys

from rich.console import Console
from rich.text import Text

# rich's own frame without the fonts that it would load from elsewhere.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

STYLES = (
    (re.compile(r"^\$ .*"), "bold bright_cyan"),
    (re.compile(r"\b(done|passed|in the store)\b"), "green"),
    (re.compile(r"\bFAILED\b"), "bold red"),
    (re.compile(r"^ +\d+:\d\d"), "dim"),
)


def draw(text: str, title: str) -> str:
    """The SVG of a transcript."""
    lines = text.rstrip("\n").split("\n")
    width = max(len(line) for line in lines)
    console = Console(record=True, width=width, file=io.StringIO(), highlight=False)
    for line in lines:
        shown = Text(line)
        for pattern, style in STYLES:
            shown.highlight_regex(pattern, style)
        console.print(shown, no_wrap=True)
    return console.export_svg(title=title, code_format=FORMAT, unique_id="cast")


if __name__ == "__main__":
    print(draw(sys.stdin.read(), sys.argv[1]))
