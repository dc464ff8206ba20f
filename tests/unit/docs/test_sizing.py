# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/sizing.md: its plays run, and print what the page says; the role's reports show the arithmetic."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.support.aws.fake_aws import FakeAws
from tests.support.fleet import ROOT, Fleet

GUIDE = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
PLAYS = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.M | re.S)
OUTPUTS = re.findall(r"^```text\n(.*?)\n```$", GUIDE, re.M | re.S)


def test_every_play_of_the_guide_prints_what_it_says(tmp_path: Path, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.metrics = {("CPUUtilization", instance): [10.0, 40.0]}
    fleet = Fleet(tmp_path)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    fleet.inventory({"host1": {**local, "instance_id": instance}})
    assert (len(PLAYS), len(OUTPUTS)) == (4, 3)
    (tmp_path / "guide.yml").write_text("---\n" + "\n".join(PLAYS))
    done = fleet.run(playbook=str(tmp_path / "guide.yml"), callback="default")
    assert done.returncode == 0, done.stdout + done.stderr
    for output in OUTPUTS:
        assert f'"msg": {json.dumps(output, ensure_ascii=False)}' in done.stdout
    (host,) = json.loads(next(tmp_path.rglob("report.json")).read_text(encoding="utf-8"))["hosts"]
    assert "CPU 40 % × 16 vCPUs = 6.4 vCPUs" in host["sizing"][0]
    # 6.4 vCPUs with a fifth of the type free take 8.
    assert any("m5.2xlarge would do" in finding["reason"] for finding in host["findings"])
    assert "### Sizing" in next(tmp_path.rglob("report.md")).read_text(encoding="utf-8")
    assert "Modify" not in "".join(aws.calls)


def test_the_guide_names_files_that_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
