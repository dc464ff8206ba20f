# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drawing as data, which a page arranges by its own style, and as SVG. Knows nothing of hosts. Pure. PRIVATE."""

from __future__ import annotations

import html
from math import ceil
from typing import Any, Callable, List, Mapping, NamedTuple, Sequence, Tuple

from ..._words import clipped, folded, printable

# Pixels of a character of 11 px in a monospace font; the widest of those named below has 0.61 of its height.
CHARACTER = 6.7
ROOM = 1160  # pixels between the edges of an SVG
_WIDER = {"title": 1.6}  # a style whose letters are larger and bold
LINE = 16
LONGEST = 160  # characters of a line, whatever a host says
_BASELINE = 12  # of a line, from its top
_CELL = 22  # the least width of a label
_GAP, _GAPS = 5, {"cpus": 2, "legend": 15, "page": 10, "panel": 10, "panels": 20, "sockets": 10}
_PAD, _PADS = 8, {"core": 2, "page": 16}
_FONT = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'


class Part(NamedTuple):
    """A text or a label, or parts in a row that is broken as needed, in columns, below each other, or in a box."""

    kind: str  # text | label | row | columns | stack | box
    style: str = ""
    text: str = ""
    about: str = ""  # shown while the pointer is on a label
    parts: Tuple[Part, ...] = ()
    characters: int = 0  # for which a label has room at least

    def plain(self, place: Callable[[str], int]) -> List[Any]:
        """The part for a page, as JSON with the places of its texts, and the parts in it."""
        texts = (self.kind, self.style, self.text, self.about)
        return [*map(place, texts), *(part.plain(place) for part in self.parts)]


def text(words: str, style: str = "") -> Part:
    """A text in as many lines as it needs."""
    return Part("text", style, clipped(printable(words), 4 * LONGEST))


def label(words: str, style: str, about: str = "", characters: int = 0) -> Part:
    """A text in the middle of a small box."""
    return Part("label", style, clipped(printable(words), LONGEST), printable(about), (), characters)


def row(parts: Sequence[Part], style: str = "") -> Part:
    """The parts from left to right, in as many rows as they need."""
    return Part("row", style, parts=tuple(parts))


def stack(parts: Sequence[Part], style: str = "") -> Part:
    """The parts below each other."""
    return Part("stack", style, parts=tuple(parts))


def box(style: str, *parts: Part) -> Part:
    """The parts below each other in a box."""
    return Part("box", style, parts=parts)


class Look(NamedTuple):
    """The colors of a class of boxes or texts, on a light page and on a dark one."""

    fill: Tuple[str, str]
    stroke: Tuple[str, str] = ("", "")
    more: str = ""  # further CSS, which is the same on both


def svg(title: str, description: str, part: Part, looks: Mapping[str, Look]) -> str:
    """The SVG of a part on a page of its own, of ASCII alone: whatever the terminal's encoding, its file is UTF-8."""
    page = _item(box("page", part), ROOM + 2 * _PADS["page"])
    size = f'viewBox="0 0 {page.width} {page.height}" width="{page.width}" height="{page.height}"'
    source = "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="host" role="img" aria-labelledby="title about" {size}>',
            f'<title id="title">{_escaped(printable(title))}</title>',
            f'<desc id="about">{_escaped(printable(description))}</desc>',
            f"<style>\n{_css(looks)}</style>",
            page.draw(0, 0),
            "</svg>",
        )
    )
    return source.encode("ascii", "xmlcharrefreplace").decode("ascii")


class _Item(NamedTuple):
    width: int
    height: int
    draw: Callable[[int, int], str]  # left, top → SVG


def _item(part: Part, room: int) -> _Item:
    """The part in at most that many pixels, if it can be so narrow."""
    gap = _GAPS.get(part.style, _GAP)
    if part.kind == "text":
        return _text(part, room)
    if part.kind == "label":
        return _label(part)
    if part.kind == "row":
        return _arranged([_item(inner, room) for inner in part.parts], gap, room)
    if part.kind == "columns":
        narrow = room // len(part.parts) - gap
        items = [_item(inner, narrow) for inner in part.parts]
        fit = max(item.width for item in items) <= narrow
        return _arranged(items, gap, room) if fit else _arranged([_item(inner, room) for inner in part.parts], gap)
    pad = _PADS.get(part.style, _PAD) if part.kind == "box" else 0
    inside = _arranged([_item(inner, room - 2 * pad) for inner in part.parts], gap)
    wide, high = inside.width + 2 * pad, inside.height + 2 * pad
    frame = _rectangle if part.kind == "box" else lambda *_place: ""
    return _Item(wide, high, lambda x, y: frame(part.style, x, y, wide, high) + inside.draw(x + pad, y + pad))


def _text(part: Part, room: int) -> _Item:
    wider = _WIDER.get(part.style, 1)
    most = min(max(int(room / CHARACTER / wider), 1), LONGEST)
    lines = folded(part.text, most)

    def draw(x: int, y: int) -> str:
        places = enumerate(lines)
        return "\n".join(_line(part.style or "text", x, y + LINE * place + _BASELINE, line) for place, line in places)

    return _Item(ceil(max(map(_width, lines), default=0) * wider), LINE * len(lines), draw)


def _label(part: Part) -> _Item:
    wide = max(_width("0" * max(part.characters, len(part.text))) + _PAD, _CELL)

    def draw(x: int, y: int) -> str:
        title = f"<title>{_escaped(part.about)}</title>" if part.about else ""
        frame = _rectangle(part.style, x, y, wide, LINE + 2)
        line = _line(f"{part.style}-text middle", x + wide // 2, y + _BASELINE + 1, part.text)
        return f"<g>{title}{frame}{line}</g>"

    return _Item(wide, LINE + 2, draw)


def _arranged(items: Sequence[_Item], gap: int, room: int = 0) -> _Item:
    """The items from left to right, as many beside each other as there is room for; without room below each other."""
    places: List[Tuple[int, int]] = []
    left = top = height = width = 0
    tall = [item for item in items if item.height]
    for item in tall:
        if left and left + item.width > room:
            left, top, height = 0, top + height + gap, 0
        places.append((left, top))
        width, height = max(width, left + item.width), max(height, item.height)
        left += item.width + gap

    def draw(x: int, y: int) -> str:
        return "\n".join(item.draw(x + left, y + top) for item, (left, top) in zip(tall, places))

    return _Item(width, top + height, draw)


def _width(words: str) -> int:
    return ceil(len(words) * CHARACTER)


def _line(style: str, x: int, y: int, words: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{_escaped(words)}</text>'


def _rectangle(style: str, x: int, y: int, width: int, height: int) -> str:
    return f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'


def _escaped(words: str) -> str:
    return html.escape(words, quote=True)


def _css(looks: Mapping[str, Look]) -> str:
    """Colors are written out, because several programs that show SVG know no variables of CSS."""
    light, dark = ([_rule(style, look, page) for style, look in looks.items()] for page in (0, 1))
    rules = [
        f".host {{ color-scheme: light dark; font: 11px {_FONT}; max-width: 100%; height: auto; }}",
        ".host .middle { text-anchor: middle; }",
        *light,
        "@media (prefers-color-scheme: dark) {",
        *dark,
        "}",
    ]
    return "".join(f"{rule}\n" for rule in rules)


def _rule(style: str, look: Look, page: int) -> str:
    stroke = f" stroke: {look.stroke[page]};" if look.stroke[page] else ""
    return f".host .{style} {{ fill: {look.fill[page]};{stroke}{look.more if page == 0 else ''} }}"
