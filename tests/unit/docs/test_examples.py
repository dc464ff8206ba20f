# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for Terraform, Packer, CloudFormation and CI, by grammar or schema; and the page that lists all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import hcl2
import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import capture

from dev import ROOT
from tests.support.fresh_host import fresh

EXAMPLES = ROOT / "docs" / "examples"


def test_the_captured_host_is_what_a_simulated_one_gives_and_is_planned_as_the_first_screen_says(
    tmp_path: Path,
) -> None:
    example = json.loads((EXAMPLES / "host.json").read_text("utf-8"))
    assert example == {**capture(fresh(tmp_path, "xen_hvm")), "captured": example["captured"], "nearmetal": "0.2.0"}
    readme = (ROOT / "README.md").read_text("utf-8")
    ((command, shown),) = re.findall(r"^\$ python3 (-m plugins\..*)\n((?:.+\n)+?)```$", readme, re.M)
    words = command.split()
    standard = [word if word != "docs/examples/host.json" else "-" for word in words]
    for arguments in (words, standard):
        with open(EXAMPLES / "host.json", "rb") as given:
            done = subprocess.run(
                [sys.executable, *arguments], stdin=given, cwd=ROOT, capture_output=True, text=True, check=True
            )
        assert done.stdout.startswith(shown)


def test_cloudformation_takes_the_association() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([str(linter), str(EXAMPLES / "association.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("server", ["github-workflow", "gitlab-ci"])
def test_the_schema_of_the_server_takes_the_job(server: str) -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    schema = {"github-workflow": "github-workflows"}.get(server, server)
    command = [str(checker), "--builtin-schema", f"vendor.{schema}", str(EXAMPLES / f"{server}.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_grammar_of_hcl_takes_the_launch_template_and_the_image() -> None:
    launch = (EXAMPLES / "launch.tf").read_text()
    resources = hcl2.loads(launch)["resource"]
    assert {kind.strip('"') for block in resources for kind in block} == {
        "aws_launch_template",
        "aws_autoscaling_group",
    }
    assert {"variable", "source", "build"} <= set(hcl2.loads((EXAMPLES / "bake.pkr.hcl").read_text()))
    for name in re.findall(r"\$\{path\.module\}/([\w.-]+)", launch):
        assert (EXAMPLES / name).exists(), name


def test_the_tags_of_the_launch_template_are_those_that_inventory_and_association_read() -> None:
    (tags,) = re.findall(r"tags +=\s*\{(.*?)\}", (EXAMPLES / "launch.tf").read_text())
    named = dict(re.findall(r'(\w+) = "(\w+)"', tags))
    inventory = yaml.safe_load((EXAMPLES / "fleet.aws_ec2.yml").read_text())
    assert inventory["compose"]["tune_workload"] == "ec2_tags.workload"
    (resource,) = yaml.safe_load((EXAMPLES / "association.yml").read_text())["Resources"].values()
    (target,) = resource["Properties"]["Targets"]
    assert (named["workload"], target) == ("web", {"Key": "tag:nearmetal", "Values": [named["nearmetal"]]})


def test_the_page_lists_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert set(re.findall(r"^\| \[([^\]]+)\]\(\1\)", page, re.MULTILINE)) == files
