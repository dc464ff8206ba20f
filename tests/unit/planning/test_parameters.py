# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One more kernel parameter is one declaration: everything else follows from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from pathlib import Path

root, *places = sys.argv[1:]
sys.path[:0] = places
from ansible_collections.nearmetal.ec2.plugins.module_utils import _parameters

KEY, RANGE = "net.ipv4.tcp_synack_retries", {"type": "int", "range": (1, 127)}
_parameters.NETWORK_STACK += (_parameters.Parameter("answers", KEY, "how often", "unmeasured", "limit", RANGE, "most"),)

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.allowed import rule_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
from tests.support import hosts
from tests.support.sequences.wanted import values_of

concern = CONCERNS["network_stack"]
hosts.lay_out(Path(root), hosts.files_of("nitro"))
facts = observe(Host(root), concern.domains)
by_user = concern.plan(facts, Wanted({"answers": 2, "persist": True}))
print([(action.where, action.before, action.after) for action in by_user.actions if action.what == "sysctl"])
print([action.after.splitlines()[1:] for action in by_user.actions if action.what == "files"])
by_workload = concern.plan(facts, Wanted({"answers": 9}, {"answers": "workload"}))
print([(finding.status, finding.now) for finding in by_workload.findings if finding.knob == "answers"])
lever_of("sysctl").check(KEY, "2")
print(rule_of("/proc/sys/net/ipv4/tcp_synack_retries")("5"), values_of("answers", concern.options["answers"]))
"""


def test_everything_follows_from_the_declaration_of_one_more(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(ROOT), str(ROOT / ".ansible" / "collections")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stdout.splitlines() == [
        "[('net.ipv4.tcp_synack_retries', '5', '2')]",
        "[['net.ipv4.tcp_synack_retries = 2']]",
        "[('ok', '5')]",
        "5 [1, 3]",
    ], done.stderr
