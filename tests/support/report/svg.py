# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SVG picture of a host as another program reads it: its boxes and texts, by their places."""

from __future__ import annotations

from typing import List, NamedTuple
from xml.etree import ElementTree

CPU_STYLES = ("answers", "may", "helps", "idle", "offline")
CHARACTER = 6.61  # pixels of a character of 11 px in DejaVu Sans Mono, Consolas or Menlo


class Box(NamedTuple):
    style: str
    left: int
    top: int
    width: int
    height: int

    def holds(self, left: float, top: float, right: float, bottom: float) -> bool:
        return (
            self.left <= left
            and right <= self.left + self.width
            and self.top <= top
            and bottom <= self.top + self.height
        )


class Text(NamedTuple):
    style: str
    text: str
    left: float
    right: float
    y: int


class Picture:
    """A picture as another program reads it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root = ElementTree.fromstring(source)
        self.boxes = [
            Box(element.get("class", ""), *(int(element.get(key, "")) for key in ("x", "y", "width", "height")))
            for element in self._all("rect")
        ]
        self.texts = [self._text(element) for element in self._all("text")]
        self.description = next(element.text or "" for element in self._all("desc"))

    def cpus(self, style: str = "") -> List[int]:
        """The CPUs that are drawn, without those of the legend."""
        styles = [f"{name}-text" for name in ([style] if style else CPU_STYLES)]
        legend = {text.y for text in self.texts if text.text in ("no work of the network", "offline")}
        rows = {row for y in legend for row in (y - 2, y - 1, y, y + 1, y + 2)}
        return sorted(int(text.text) for text in self.texts if text.style in styles and text.y not in rows)

    def queues(self) -> List[str]:
        return [text.text for text in self.texts if text.style == "queue-text"]

    def heading_around(self, words: str) -> str:
        """The first line of the smallest box of a node, or of those near none, around a text."""
        (text,) = (text for text in self.texts if text.text.startswith(words))
        around = [box for box in self.boxes if box.style == "node" and box.holds(text.left, text.y, text.right, text.y)]
        box = min(around, key=lambda box: box.width * box.height)
        inside = [line for line in self.texts if line.style == "heading" and box.holds(line.left, line.y, 0, line.y)]
        return min(inside, key=lambda line: line.y).text

    def _all(self, tag: str) -> List[ElementTree.Element]:
        return list(self.root.iter(f"{{http://www.w3.org/2000/svg}}{tag}"))

    def _text(self, element: ElementTree.Element) -> Text:
        styles, text, x = element.get("class", "").split(), element.text or "", int(element.get("x", ""))
        width = len(text) * CHARACTER * (16 / 11 if "title" in styles else 1)
        left = x - width / 2 if "middle" in styles else x
        return Text(styles[0], text, left, left + width, int(element.get("y", "")))
