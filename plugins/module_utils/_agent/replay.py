# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal plan --from FILE`: what would be done on a captured host, without that host. PRIVATE to the collection.

The captured files are laid out below a temporary folder and read as any host's are. A
capture comes from somebody else: nothing of it leaves that folder, or reaches a terminal raw.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import record_key
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.captured import read
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.say import say
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.tell import say_commands
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.choice import ADVISE, Chosen, choose
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import described
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, Run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.json_data import json_data
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.unit import NAME as UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import in_words, sentence, status_words

_WIDTH = 28  # of a value in the table


class CapturedHost(WritableHost):
    """A captured host below a temporary root."""

    def __init__(self, root: str, machine: Optional[str], drivers: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(root)
        self._machine = machine
        self._drivers = drivers

    def is_root(self) -> bool:
        """It is planned as root would; nothing is written."""
        return True

    def machine(self) -> Optional[str]:
        return self._machine

    def _driver(self, device: str, record: bytes) -> bytes:
        answer = self._drivers.get(device, {}).get(record_key(record))
        if answer is None:
            raise OSError(95, "not in the capture", device)
        return bytes.fromhex(answer)


def plan_from(path: str, workload: Optional[str], as_json: bool, as_commands: bool) -> int:
    """Print what would be done: for workloads, or else for what was wanted on that host, or else for `base`."""
    captured = read(path)
    concerns = {} if workload else captured["wanted"]
    if not concerns:
        workload = workload or "base"
    with tempfile.TemporaryDirectory(prefix="nearmetal-") as folder:
        host = lay_out(captured, folder)
        chosen, done = planned(host, workload, concerns)
        outcomes = [outcome for outcome in done.outcomes if outcome.name != UNIT]
        if as_commands:
            return say_commands(host, outcomes)
    if as_json:
        about = {key: captured[key] for key in ("captured", "nearmetal")}
        result = {**described(done.facts, outcomes), "workload": chosen.names, **about}
        say(json.dumps(result, indent=1, sort_keys=True))
    else:
        say(_table(captured, json_data(done.facts.platform), outcomes))
    return int(any(outcome.error for outcome in outcomes))


def planned(host: CapturedHost, workload: Optional[str], concerns: Mapping[str, Any]) -> Tuple[Chosen, Run]:
    """The workloads chosen, and what a run for them would do."""
    names = [name.strip() for name in workload.split(",")] if workload else None
    chosen = choose(host, names, ADVISE, {})
    done = run(
        host,
        lambda known: tune_requests(chosen.names, concerns, {}, known, findings=chosen.findings),
        check=True,
        conditions=Conditions(lenient=True),
    )
    return chosen, done


def lay_out(captured: Mapping[str, Any], folder: str) -> CapturedHost:
    """The captured host below an empty folder.

    Every folder is there before the first link, and links come last: nothing is made through one, not even where
    the file system takes two spellings for one name.
    """
    files, links = captured["files"], captured["links"]
    read_only = frozenset(captured["read_only"])
    try:
        for path in dict.fromkeys((*captured["folders"], *map(os.path.dirname, (*files, *links)))):
            os.makedirs(folder + path, exist_ok=True)
        for path, text in files.items():
            if os.path.isdir(folder + path):
                continue
            with open(folder + path, "xb") as stream:
                stream.write(text.encode("utf-8", "replace"))
            if path in read_only:
                os.chmod(folder + path, 0o444)
        for path, target in links.items():
            os.symlink(target, folder + path)
    except UnicodeError:
        raise NearmetalError("the capture contradicts itself: a symbolic link with an impossible name") from None
    except OSError as error:
        raise NearmetalError(f"the capture contradicts itself: {os.strerror(error.errno or 0)}") from None
    return CapturedHost(folder, captured["machine"], captured["drivers"])


def _table(captured: Mapping[str, Any], platform: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """A line per finding, the reason below it."""
    host = " · ".join(str(platform.get(key)) for key in ("instance_type", "host_class", "kernel") if platform.get(key))
    rows: List[str] = [f"captured on {captured['captured']} by nearmetal {captured['nearmetal']} · {host}"]
    for outcome in outcomes:
        if outcome.error:
            rows += [f"{'failed':15} {outcome.name}", f"{'':16}{outcome.error}"]
        for finding in outcome.plan.findings:
            place = f" {finding.where}" if finding.where else ""
            now, goal = in_words(finding.now, "", _WIDTH), in_words(finding.wanted, "", _WIDTH)
            change = f"{now or 'absent'} → {goal}" if finding.status == "would_change" else now
            rows += [
                f"{status_words(finding.status):15} {finding.concern}.{finding.knob}{place}  {change}",
                f"{'':16}{finding.reason}",
            ]
    return "\n".join(map(sentence, rows))
