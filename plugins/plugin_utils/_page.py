# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page that loads nothing, and in which only its own style and script are allowed, by their hashes. PRIVATE."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

# In a script element a browser looks only for its end tag and for comments.
_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def data(plain: Any) -> Markup:
    """Data for the script of a page, as JSON that a browser neither shows nor runs."""
    return Markup(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).translate(_INERT))


def fill(template: Path, styles: Sequence[str], scripts: Sequence[str] = (), **values: Any) -> str:
    """The template with the styles and scripts beside it; values are never markup."""
    folder = template.parent
    for kind, names in (("style", styles), ("script", scripts)):
        text = "".join((folder / name).read_text("utf-8") for name in names)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        values.update({kind: Markup(text), f"{kind}_hash": f"sha256-{digest}"})
    loader = FileSystemLoader([folder, Path(__file__).parent])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment.get_template(template.name).render(values)
