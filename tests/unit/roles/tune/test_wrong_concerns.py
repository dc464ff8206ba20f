# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role tune says of mistakes in tune_concerns, and what is none. Ansible's own validation comes first.

It would say less of most of these values, and refuse some that are right, if the argument spec had the concerns'
options: dev/generate/roles.yml has the reasons.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from dev import ROOT
from tests.support.simulated import simulate

# Host → its tune_concerns, and what the role says of them.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt_concern": ({"clock": {"source": "tsc"}}, "concern 'clock' is unknown; there are clocksource,"),
    "misspelt_option": (
        {"clocksource": {"sorce": "tsc"}},
        "clocksource.sorce isn't an option; clocksource has source,",
    ),
    "misspelt_in_a_list": (
        {"block_storage": {"disks": [{"device": "x", "schedule": "none"}]}},
        "block_storage.disks[0].schedule isn't an option; block_storage.disks[0] has scheduler,",
    ),
    "wrong_choice": ({"hugepages": {"thp": "alway"}}, "hugepages.thp can't be 'alway'; choose one of kernel, always,"),
    "boolean_for_a_choice": (
        {"smt": {"threads": False}},
        "smt.threads can't be false; choose one of enabled, disabled",
    ),
    "no_number": (
        {"network_stack": {"somaxconn": "many"}},
        "network_stack.somaxconn must be a whole number from 1 to 2147483647, not 'many'",
    ),
    "number_too_small": (
        {"network_stack": {"somaxconn": -4}},
        "network_stack.somaxconn must be a whole number from 1 to 2147483647, not -4",
    ),
    "no_mapping": (
        {"smt": False},
        "tune_concerns.smt must be a mapping of options, not false; to leave smt out,",
    ),
    "no_list": ({"network_stack": {"interfaces": {"name": "ens5"}}}, "network_stack.interfaces must be a list, not"),
}
RIGHT: dict[str, dict[str, Any]] = {
    "null_as_concern": {"clocksource": None},
    "concern_without_options": {"clocksource": {}},
    "null_as_option": {"clocksource": {"persist": None, "owner_conflict": None, "source": None}},
    "omitted_option": {
        "hugepages": {"thp": "{{ my_thp | default(omit) }}"},
        "network_stack": {"somaxconn": "{{ omit }}"},
    },
    "quotient": {"network_stack": {"somaxconn": 4096.0}},
    "list_as_text": {"service_check": {"services": "redis.service, nginx.service"}},
}
FAILED = re.compile(r"^fatal: \[(\w+)\]: FAILED! => (\{.*\})$", re.M)


def said_of_concerns(folder: Path, venv: Path, collections: Path) -> dict[str, str]:
    """Host → what the role said in check mode, or "" where it was content; with the Ansible of that environment."""
    variables = simulate(folder / "h", "nitro")
    concerns = {**{host: given for host, (given, _said) in MISTAKES.items()}, **RIGHT}
    hosts = {name: {**variables, "tune_concerns": given} for name, given in concerns.items()}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    play = [{"hosts": "all", "gather_facts": False, "strategy": "free", "roles": ["nearmetal.ec2.tune"]}]
    (folder / "play.json").write_text(json.dumps(play))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [str(venv / "bin/ansible-playbook"), "-i", "hosts.json", "play.json", "--check"],
        cwd=folder,
        env={**environment, "ANSIBLE_COLLECTIONS_PATH": str(collections)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = {host: str(json.loads(result)["msg"]) for host, result in FAILED.findall(done.stdout)}
    content = re.findall(r"^(\w+) +: ok=[1-9]\d* .* failed=0 ", done.stdout, re.M)
    assert {*failed, *content} == set(concerns), done.stdout + done.stderr
    return {**dict.fromkeys(content, ""), **failed}


def require_sentences(said: dict[str, str]) -> None:
    """Each mistake has its sentence, and what is right has none."""
    assert {host: said[host] for host in RIGHT} == dict.fromkeys(RIGHT, "")
    for host, (_given, sentence) in MISTAKES.items():
        assert said[host].startswith(sentence)
    assert said["misspelt_concern"].endswith("; is clocksource meant?")
    assert said["misspelt_option"].endswith("; is source meant?")


def test_mistakes_have_the_sentences_of_the_concerns_and_null_means_none(tmp_path: Path) -> None:
    require_sentences(said_of_concerns(tmp_path, Path(sys.executable).parents[1], ROOT / ".ansible/collections"))
