# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenario ec2, on real AMIs: `python -m dev.real_amis [test|destroy|left]`. It costs money.

NEARMETAL_EC2 names a file of variables, see docs/real_amis.md. No other command of the project runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import yaml

from dev import ROOT, scenario, suites
from dev.programs import amazon_aws

SCENARIO = ROOT / "molecule" / "ec2"
ARCHITECTURES = ("x86_64", "arm64")
COMMANDS = {
    "destroy": ["molecule", "destroy", "--scenario-name", "ec2"],
    "left": ["ansible-playbook", "--inventory", "localhost,", "molecule/ec2/left.yml"],
}


class SettingsError(Exception):
    """A sentence that says what is wrong with the file of variables."""


def matrix() -> "list[str]":
    """The platforms that can be named."""
    systems = yaml.safe_load((SCENARIO / "vars" / "matrix.yml").read_text(encoding="utf-8"))["ec2_systems"]
    return [f"{system}_{architecture}" for system in systems for architecture in ARCHITECTURES]


def _settings(name: str) -> "dict[str, Any]":
    try:
        text = Path(name).read_text(encoding="utf-8")
        settings = yaml.safe_load(text)
    except OSError as error:
        raise SettingsError(f"{name}: {error.strerror}.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{name} is no YAML: line {line}.") from error
    return settings if isinstance(settings, dict) else {}


def environment(given: "Mapping[str, str]") -> "dict[str, str]":
    """The environment of molecule: the file of variables, the platforms, the folder of amazon.aws."""
    name = given.get("NEARMETAL_EC2", "")
    if not name:
        raise SettingsError("Name your file of variables in NEARMETAL_EC2; docs/real_amis.md says what it holds.")
    platforms = [str(platform) for platform in _settings(name).get("ec2_platforms") or []]
    if not platforms:
        raise SettingsError(f"{name}: ec2_platforms names no platform; docs/real_amis.md lists them.")
    unknown = [platform for platform in platforms if platform not in matrix()]
    if unknown:
        raise SettingsError(f"{name}: ec2_platforms has no {', '.join(unknown)}; docs/real_amis.md lists them.")
    return {
        "NEARMETAL_EC2": str(Path(name).resolve()),
        "NEARMETAL_EC2_PLATFORMS": f"[{', '.join(f'name: {platform}' for platform in platforms)}]",
        "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / '.ansible' / 'collections'}{os.pathsep}{amazon_aws.HOME}",
        "MOLECULE_GLOB": "molecule/*/molecule.yml",
    }


def main(arguments: "list[str]") -> int:
    """Run the whole scenario, destroy its hosts, or list what earlier runs left."""
    command = (arguments or ["test"])[0]
    if command != "test" and command not in COMMANDS:
        print(f"No such command: {command}. There are: test, {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        os.environ.update(environment(os.environ))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if command == "test":
        suites.JUNIT.mkdir(parents=True, exist_ok=True)
        return scenario.main(["ec2", str(suites.JUNIT / "molecule-ec2.xml")])
    folder = {"molecule_ephemeral_directory": str(ROOT / "build")}
    extra = [word for key, value in folder.items() for word in ("--extra-vars", f"{key}={value}")]
    words = COMMANDS[command] + (extra if command == "left" else [])
    return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
