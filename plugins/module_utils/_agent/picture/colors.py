# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The colors of the picture of a host, for a light and a dark page. PRIVATE to the collection.

Text has a contrast of at least 4.5 with what is below it (WCAG 2.1, 1.4.3). Work is marked by strokes,
not by color alone.
"""

from __future__ import annotations

from .drawing import Look

LIGHT = {
    "page": Look("#ffffff"),
    "text": Look("#161b22"),
    "muted": Look("#566070"),
    "title": Look("#161b22", more=" font-size: 16px; font-weight: 700;"),
    "heading": Look("#161b22", more=" font-weight: 700;"),
    "socket": Look("#f5f6f8", "#8a94a3"),
    "node": Look("#ffffff", "#8a94a3"),
    "cache": Look("#f5f6f8", "#c3cad3"),
    "core": Look("#ffffff", "#8a94a3"),
    "nic": Look("#eef4fc", "#6f9bd8"),
    "answers": Look("#1c5fc4", "#1c5fc4"),
    "answers-text": Look("#ffffff", more=" font-weight: 700;"),
    "may": Look("#cfe1f9", "#1c5fc4"),
    "may-text": Look("#0d2f63"),
    "helps": Look("#ffffff", "#1c5fc4", " stroke-dasharray: 3 2;"),
    "helps-text": Look("#0d2f63"),
    "idle": Look("#e3e7ec", "#e3e7ec"),
    "idle-text": Look("#161b22"),
    "offline": Look("#ffffff", "#c3cad3", " stroke-dasharray: 1 3;"),
    "offline-text": Look("#566070", more=" text-decoration: line-through;"),
    "queue": Look("#ffffff", "#6f9bd8"),
    "queue-text": Look("#161b22"),
    "disk": Look("#f4efe2", "#b59b5b"),
    "disk-text": Look("#3a2d08"),
}
DARK = {
    "page": Look("#0e1217"),
    "text": Look("#e7ecf2"),
    "muted": Look("#9aa7b8"),
    "title": Look("#e7ecf2"),
    "heading": Look("#e7ecf2"),
    "socket": Look("#161c24", "#5d6b7d"),
    "node": Look("#0e1217", "#5d6b7d"),
    "cache": Look("#161c24", "#37424f"),
    "core": Look("#0e1217", "#5d6b7d"),
    "nic": Look("#122033", "#3f6ea8"),
    "answers": Look("#7fb0ff", "#7fb0ff"),
    "answers-text": Look("#04122a"),
    "may": Look("#1d3a66", "#7fb0ff"),
    "may-text": Look("#e1edff"),
    "helps": Look("#0e1217", "#7fb0ff"),
    "helps-text": Look("#cfe1ff"),
    "idle": Look("#2a333f", "#2a333f"),
    "idle-text": Look("#e7ecf2"),
    "offline": Look("#0e1217", "#37424f"),
    "offline-text": Look("#9aa7b8"),
    "queue": Look("#0e1217", "#3f6ea8"),
    "queue-text": Look("#e7ecf2"),
    "disk": Look("#2a2413", "#8a7433"),
    "disk-text": Look("#f3e6bf"),
}
