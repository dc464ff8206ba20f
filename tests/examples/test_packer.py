# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of docs/examples, validated by Packer.

Debian's Packer, 1.6.6, is the last of its kind: it brings the plugins itself, and knows no block that requires them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dev import ROOT
from dev.programs.unpacked import PACKER

EXAMPLES = ROOT / "docs/examples"
REQUIRED = re.compile(r"^packer \{\n.*?^\}\n", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("right", "wrong", "code"),
    [("playbook_file ", "playbook_file ", 0), ("playbook_file ", "playbok_file ", 1), ('"bake.yml"', '"none.yml"', 1)],
)
def test_packer_validates_the_image(tmp_path: Path, right: str, wrong: str, code: int) -> None:
    for name in ("bake.yml", "requirements.yml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    text, blocks = REQUIRED.subn("", (EXAMPLES / "bake.pkr.hcl").read_text())
    assert blocks == 1
    (tmp_path / "bake.pkr.hcl").write_text(text.replace(right, wrong))
    environment = {**os.environ, "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(
        [PACKER.path("usr/bin/packer"), "validate", "bake.pkr.hcl"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
