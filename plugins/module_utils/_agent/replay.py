# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal plan --from FILE`: what would be done on a captured host, without that host. PRIVATE to the collection.

A capture comes from somebody else: nothing of it becomes a file, or reaches a terminal raw.
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.requests import tune_requests
from .._engine.result import described
from .._engine.run import Conditions, Run, plan_run
from .._engine.session import Outcome
from .._facts.json_data import json_data
from .._planning.unit import NAME as UNIT
from .._requests.asking import ask
from .._requests.choice import ADVISE, Chosen, choose
from .._words import in_words, sentence, status_words
from .captured import CapturedHost, read
from .output import print_line
from .subcommands import print_commands

_WIDTH = 28  # of a value in the table
_SETTLED = ("ok", "not_applicable")  # what there is to do stands before it


def plan_from(options: Namespace) -> int:
    """Print what would be done: for workloads and programs, or for what was wanted there, or for `base`."""
    captured, workload = read(options.file), options.workload
    concerns = {} if workload or options.program else captured["wanted"]
    if not concerns:
        workload = workload or "base"
    host = CapturedHost(captured)
    chosen, done = planned(host, workload, concerns, options.program, options.allow_not_ec2)
    outcomes = [outcome for outcome in done.outcomes if outcome.name != UNIT]
    if options.commands:
        return print_commands(host, outcomes)
    if options.json:
        about = {key: captured[key] for key in ("captured", "nearmetal")}
        result = {**described(done.facts, outcomes), "workload": chosen.names, **about}
        print_line(json.dumps(result, indent=1, sort_keys=True))
    else:
        print_line(_table(captured, json_data(done.facts.platform), outcomes))
    return int(any(outcome.error for outcome in outcomes))


def planned(
    host: CapturedHost,
    workload: Optional[str],
    concerns: Mapping[str, Any],
    program: Optional[str] = None,
    allow_not_ec2: bool = False,
) -> Tuple[Chosen, Run]:
    """The workloads chosen, and what a run for them, and for these programs, would do."""
    names, programs = ([word.strip() for word in words.split(",")] if words else None for words in (workload, program))
    common = {"allow_not_ec2": True} if allow_not_ec2 else {}
    chosen = choose(host, names, ADVISE, {})
    asking = ask(host, programs, applies=programs == ["auto"], prune=True, held=False)
    findings = chosen.findings + asking.findings
    done = plan_run(
        host,
        lambda known: tune_requests(chosen.names, concerns, common, known, findings=findings, claims=asking.claims),
        conditions=Conditions(lenient=True),
    )
    return chosen, done


def _table(captured: Mapping[str, Any], platform: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """A line per finding, the reason below it; findings that say the same share both."""
    host = " · ".join(str(platform.get(key)) for key in ("instance_type", "host_class", "kernel") if platform.get(key))
    rows: List[str] = [f"captured on {captured['captured']} by nearmetal {captured['nearmetal']} · {host}"]
    rows += [f"{'failed':15} {outcome.name}\n{'':16}{outcome.error}" for outcome in outcomes if outcome.error]
    names: Dict[Tuple[str, str, str], List[str]] = {}
    findings = (finding for outcome in outcomes for finding in outcome.plan.findings)
    for finding in sorted(findings, key=lambda found: (found.status != "would_change", found.status in _SETTLED)):
        now, goal = in_words(finding.now, "", _WIDTH), in_words(finding.wanted, "", _WIDTH)
        change = f"{now or 'absent'} → {goal}" if finding.status == "would_change" else now
        name = f"{finding.concern}.{finding.knob}{f' {finding.where}' if finding.where else ''}"
        names.setdefault((finding.status, change, finding.reason), []).append(name)
    for (status, change, reason), same in names.items():
        rows += [f"{status_words(status):15} {', '.join(same)}  {change}", f"{'':16}{reason}"]
    return "\n".join(sentence(line) for row in rows for line in row.splitlines())
