# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""speedscope reads the folded stacks of a profile, and counts in each function what the profile counted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Folder

from dev import ROOT
from dev.programs import speedscope
from tests.support.report.browser import Browser

RECORDED = ROOT / "tests/unit/profile/recorded"
# What its command does: the page loads a script that has the file. One of its views is a table of all functions.
LOAD = "speedscope.loadFileFromBase64('profile.folded', {})"
ROWS = """(async () => {
  const until = async (found) => {
    for (let look = 0; look < 1000 && !found(); look++) await new Promise((done) => setTimeout(done, 20));
    return found();
  };
  const tab = () => [...document.querySelectorAll('div')].filter((div) => div.innerText.endsWith('Sandwich')).pop();
  await until(() => tab() && document.body.innerText.includes('profile.folded'));
  tab().click();
  await until(() => document.querySelector('td'));
  return [...document.querySelectorAll('tr')].slice(1).map((row) => row.innerText.split(/\\s*[\\t\\n]\\s*/));
})()"""


@pytest.mark.parametrize("name", ["odd.txt", "redis_dd_python-cpu-clock-perf-6.1-linux-6.18.txt"])
def test_speedscope_counts_what_the_profile_did(name: str, tmp_path: Path) -> None:
    folder = Folder()
    folder.add((RECORDED / name).read_text("utf-8").splitlines(keepends=True))
    tree = folder.tree()
    folded = "".join(f"{line}\n" for line in tree.lines())
    (tmp_path / "load.js").write_text(LOAD.format(json.dumps(base64.b64encode(folded.encode()).decode())), "utf-8")
    with Browser() as browser:
        browser.view(1280, 20000)  # the table has the rows that are seen
        browser.call("Page.navigate", url=f"{speedscope.PAGE.as_uri()}#localProfilePath={tmp_path}/load.js")
        rows = browser.run(ROWS)
    whole = sum(tree.own)
    assert counted({row[-1]: row[0] for row in rows}) == {
        name: round(share * whole) for name, share in tree.shares().items()
    }
    own = {name: round(share * whole) for name, share in tree.shares(own=True).items()}
    assert {name: count for name, count in counted({row[-1]: row[1] for row in rows}).items() if count} == own


def counted(cells: Dict[str, str]) -> Dict[str, int]:
    """Function → samples, of cells such as `1,603 (100%)`."""
    return {name: int(cell.split()[0].replace(",", "")) for name, cell in cells.items()}
