# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status, reports and modules say a status in the same words: those of `status_words`, and of no other place."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Set

from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import status_words
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.headings import FAILED, LOOKS

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "plugins" / "module_utils" / "_words.py"
# Statuses of one word are also values in the data; only these can't be anything but a printed status.
PRINTED = {status_words(status, count) for status in STATUSES for count in (1, 2) if "_" in status}


def literals(path: Path) -> Set[str]:
    """The texts in the code of a file, without the punctuation around them."""
    tree = ast.parse(path.read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text.strip(" .,;:()") for text in texts}


def test_no_other_place_has_the_words_of_a_status() -> None:
    code = [path for path in (ROOT / "plugins").rglob("*.py") if path != TABLE]
    assert len(code) > 300
    assert {str(path): PRINTED & literals(path) for path in code if PRINTED & literals(path)} == {}
    pages = [path for path in (ROOT / "plugins").rglob("*") if path.suffix in (".js", ".j2")]
    assert len(pages) > 3
    found = {str(path): [words for words in PRINTED if words in path.read_text("utf-8")] for path in pages}
    assert {path: words for path, words in found.items() if words} == {}


def test_each_status_has_a_mark_and_the_page_explains_it_in_these_words() -> None:
    assert {look.name for look in LOOKS} == {*STATUSES, FAILED}
    assert all(look.words == status_words(look.name) for look in LOOKS)
    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    rows = [line.split("|")[1:3] for line in page.partition("## Marks")[2].splitlines() if line.startswith("| ")]
    assert [(mark.strip(), words.strip()) for mark, words in rows[1:]] == [(look.mark, look.words) for look in LOOKS]
