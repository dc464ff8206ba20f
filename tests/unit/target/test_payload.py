# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Out of a zip file like Ansible's payload, each Python compiles our modules once."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
OURS = "ansible_collections/nearmetal/ec2/plugins/module_utils"
# As in a payload: packages above ours without a word in them, and Ansible's own module before ours.
BARE = ("ansible", "ansible/module_utils", *(OURS.rsplit("/", count)[0] for count in range(5)))
LOOK = """
import collections, json, pkgutil, sys
seen = collections.Counter()
sys.addaudithook(lambda event, told: event == "compile" and seen.update([str(told[1])]))
import ansible.module_utils.basic
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns import concern, options
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import facts
source = pkgutil.get_data(facts.__package__, "facts.py").decode("utf-8")
print(json.dumps({"compiled": seen, "file": facts.__file__, "cached": facts.__spec__.origin, "source": source}))
"""


def test_each_module_is_compiled_once_and_knows_its_file(tmp_path: Path) -> None:
    payload = tmp_path / "payload.zip"
    utils = PROJECT / "plugins/module_utils"
    with zipfile.ZipFile(payload, "w") as archive:
        for package in BARE:
            archive.writestr(f"{package}/__init__.py", "")
        archive.writestr("ansible/module_utils/basic.py", "")
        for source in utils.rglob("*.py"):
            if source.parent != utils or source.name != "__init__.py":
                archive.write(source, f"{OURS}/{source.relative_to(utils)}")
    told = json.loads(
        subprocess.run(
            [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(payload)!r}){LOOK}"],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )
    ours = {name: count for name, count in told["compiled"].items() if OURS in name}
    twice = {name.split(f"{OURS}/")[1] for name, count in ours.items() if count != 1}
    # Those that are loaded before it can be changed.
    assert twice == {"__init__.py", "_concerns/__init__.py", "_payload.py"}
    assert len(ours) > 50
    assert told["file"] == told["cached"] == f"{payload}/{OURS}/_facts/facts.py"
    assert told["source"] == (utils / "_facts/facts.py").read_text("utf-8")
