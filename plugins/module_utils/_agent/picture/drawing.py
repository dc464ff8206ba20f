# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text and boxes that arrange themselves, and an SVG document of them. Knows nothing of hosts. Pure. PRIVATE."""

from __future__ import annotations

import html
from math import ceil
from typing import Callable, List, Mapping, NamedTuple, Sequence, Tuple

from ..._words import clipped, printable

# Pixels of a character of 11 px in a monospace font; the widest of those named below has 0.61 of its height.
CHARACTER = 6.7
LINE = 16
GAP = 5
PAD = 8
LONGEST = 160  # characters of a line, whatever a host says
_BASELINE = 12  # of a line, from its top
_FONT = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'


class Item(NamedTuple):
    """Something with a size, that can be drawn at a place."""

    width: int
    height: int
    draw: Callable[[int, int], str]  # left, top → SVG


class Look(NamedTuple):
    """The colors of a class of boxes or texts."""

    fill: str
    stroke: str = ""
    more: str = ""  # further CSS, which is the same on dark and light pages


def words(text: str, style: str = "text") -> Item:
    """One line of text."""
    clipped_text = clipped(printable(text), LONGEST)
    return Item(width_of(clipped_text), LINE, lambda x, y: _text(style, x, y + _BASELINE, clipped_text))


def paragraph(text: str, room: int, style: str = "text") -> Item:
    """The text in as many lines as it needs."""
    most = max(int(room / CHARACTER), 1)
    lines: List[str] = []
    for word in printable(text).split():
        if lines and len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(clipped(word, most))
    return stack([words(line, style) for line in lines], 0)


def label(text: str, style: str, width: int = 0, about: str = "") -> Item:
    """A text in the middle of a box of at least that width; `about` is shown while the pointer is on it."""
    clipped_text = clipped(printable(text), LONGEST)
    wide = max(width, width_of(clipped_text) + PAD)

    def draw(x: int, y: int) -> str:
        title = f"<title>{_escaped(printable(about))}</title>" if about else ""
        box = _rectangle(style, x, y, wide, LINE + 2)
        return f"<g>{title}{box}{_text(f'{style}-text middle', x + wide // 2, y + _BASELINE + 1, clipped_text)}</g>"

    return Item(wide, LINE + 2, draw)


def flow(items: Sequence[Item], room: int, gap: int = GAP) -> Item:
    """The items from left to right, in as many rows as they need."""
    places: List[Tuple[int, int]] = []
    left = top = height = width = 0
    for item in items:
        if left and left + item.width > room:
            left, top, height = 0, top + height + gap, 0
        places.append((left, top))
        width, height = max(width, left + item.width), max(height, item.height)
        left += item.width + gap
    return Item(width, top + height, lambda x, y: _drawn(items, places, x, y))


def stack(items: Sequence[Item], gap: int = GAP) -> Item:
    """The items below each other; those without a height are left out."""
    tall = [item for item in items if item.height]
    places: List[Tuple[int, int]] = []
    top = 0
    for item in tall:
        places.append((0, top))
        top += item.height + gap
    width = max((item.width for item in tall), default=0)
    return Item(width, max(top - gap, 0), lambda x, y: _drawn(tall, places, x, y))


def boxed(inner: Item, style: str, width: int = 0, pad: int = PAD) -> Item:
    """The item in a box of at least that width."""
    wide, high = max(width, inner.width + 2 * pad), inner.height + 2 * pad
    return Item(wide, high, lambda x, y: _rectangle(style, x, y, wide, high) + inner.draw(x + pad, y + pad))


def width_of(text: str) -> int:
    """The pixels that a text takes."""
    return ceil(len(text) * CHARACTER)


def document(title: str, description: str, inner: Item, light: Mapping[str, Look], dark: Mapping[str, Look]) -> str:
    """The SVG of an item on a page of its own, of ASCII alone: whatever the terminal's encoding, its file is UTF-8."""
    page = boxed(inner, "page", pad=2 * PAD)
    size = f'viewBox="0 0 {page.width} {page.height}" width="{page.width}" height="{page.height}"'
    text = "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="host" role="img" aria-labelledby="title about" {size}>',
            f'<title id="title">{_escaped(printable(title))}</title>',
            f'<desc id="about">{_escaped(printable(description))}</desc>',
            f"<style>\n{_css(light, dark)}</style>",
            page.draw(0, 0),
            "</svg>",
        )
    )
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _drawn(items: Sequence[Item], places: Sequence[Tuple[int, int]], x: int, y: int) -> str:
    return "\n".join(item.draw(x + left, y + top) for item, (left, top) in zip(items, places))


def _text(style: str, x: int, y: int, text: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{_escaped(text)}</text>'


def _rectangle(style: str, x: int, y: int, width: int, height: int) -> str:
    return f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _css(light: Mapping[str, Look], dark: Mapping[str, Look]) -> str:
    """Colors are written out, because several programs that show SVG know no variables of CSS."""
    rules = [
        f".host {{ color-scheme: light dark; font: 11px {_FONT}; max-width: 100%; height: auto; }}",
        ".host .middle { text-anchor: middle; }",
        *_rules(light),
        "@media (prefers-color-scheme: dark) {",
        *_rules(dark),
        "}",
    ]
    return "".join(f"{rule}\n" for rule in rules)


def _rules(looks: Mapping[str, Look]) -> List[str]:
    rules = []
    for style, look in looks.items():
        stroke = f" stroke: {look.stroke};" if look.stroke else ""
        rules.append(f".host .{style} {{ fill: {look.fill};{stroke}{look.more} }}")
    return rules
