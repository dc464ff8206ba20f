# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of an audit, on the controller: the gate of `audit_fail_on`, and the reports when no callback writes them."""

from __future__ import annotations

import time
from typing import Any, Mapping

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.validation import check_type_list
from ansible.plugins.action import ActionBase

from ..module_utils._error import NearmetalError
from ..module_utils._requests.combined import require_known
from ..module_utils._words import span
from ..plugin_utils._ansible import plays
from ..plugin_utils._ansible.results import follows_contract
from ..plugin_utils._ansible.variables import require_limits, warn
from ..plugin_utils._benchmark import store
from ..plugin_utils._benchmark.ranking import rankings
from ..plugin_utils._files import brief, require_folder, short_path
from ..plugin_utils._forms.write import write_all
from ..plugin_utils._report import allowances, document, history, proven, summary, worth
from ..plugin_utils._report.collect import Collector
from ..plugin_utils._report.headings import FAILABLE
from ..plugin_utils._report.model import Report, plural
from ..plugin_utils._report.run import NOTHING_PLANNED, Clock, ineffective, only_mistakes

BLIND = (
    "without the callback nearmetal.ec2.fleet it is not known why a host gave no result, nor how long the run took:"
    " set stdout_callback = nearmetal.ec2.fleet in ansible.cfg"
)
OPTIONS = {
    "result": {"type": "list", "elements": "str", "default": ["tune_result"]},
    "fail_on": {"type": "list", "elements": "str", "choices": list(FAILABLE), "default": []},
    "baseline": {"type": "path"},
    "history": {"type": "path"},
    "only_check": {"type": "bool", "default": False},
    "fail": {"type": "bool", "default": True},
    "failure": {"type": "str"},
}
_ROOM_OF_A_HOST = 36000  # bytes of the reports: two thirds of what each of 60 hosts with 80 findings took
_PATHS = {"baseline": "a run is compared with one report", "history": "a run is kept in one directory"}


class ActionModule(ActionBase):
    """Reads the registered result of every host of the play."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """`{fail_on, baseline, hosts, findings, written}`; failed when `fail_on` was hit."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        if "failure" in self._task.args:
            sentence = str(self._task.args["failure"])
            return {**result, "changed": False, "failed": bool(sentence), "msg": sentence}
        try:
            self._task.args.update(_join_hosts(self._task.args, variables))
            _checked, options = self.validate_argument_spec(OPTIONS)
            earlier = document.load(options["baseline"]) if options["baseline"] else None
            past = history.load(options["history"]) if options["history"] else ()
            if options["only_check"]:
                require_limits(variables, self._task.action)
                _require_known_workload(variables)
                plays.require_report_directory(_ROOM_OF_A_HOST * len(variables.get("ansible_play_hosts_all", ())))
                if options["history"]:
                    require_folder("audit_history", options["history"], elsewhere="name another directory")
                return warn({**result, "changed": False}, self._task.action, variables)
            # The callback knows more: hosts that could not be reached, and the time.
            seen_by_callback = plays.CALLBACK == C.DEFAULT_STDOUT_CALLBACK
            # The variables of a whole fleet cost the controller more than anything else here.
            needed = options["fail_on"] or not seen_by_callback
            collector = _collect(options["result"], variables) if needed else Collector()
            if not seen_by_callback and only_mistakes(_mistaken(options["result"], variables), collector):
                raise NearmetalError(NOTHING_PLANNED)
            blind_spots = () if seen_by_callback else (BLIND,)
            directory = "" if seen_by_callback else plays.report_directory()
            clock = Clock()
            clock.saw(self._task.get_play())
            run = clock.run("audit")
            proofs = proven.last(directory, collector.names()) if directory else {}
            ranked = rankings(store.runs(directory), collector.names()) if directory else ()
            report = collector.report(
                run, blind_spots, options["fail_on"], earlier, short_path(directory), proofs, ranked, past
            )
            written = [] if seen_by_callback else write_all(report, directory)
            if not seen_by_callback:
                # Shown even if the history can't be written.
                result.update(_summary(report))
                self._display.display(f"{result['msg']} Reports: {brief(written)}")
                if options["history"]:
                    history.keep(options["history"], report)
        except NearmetalError as error:
            raise AnsibleActionFail(str(error)) from None
        hosts, findings = (report.gate.hosts, report.gate.findings) if report.gate else ((), 0)
        kinds = f"{plural(findings, 'finding')} with a status of {', '.join(options['fail_on'])}"
        failure = f"audit_fail_on: {kinds} on {span(hosts)}; see report.json" if hosts else ""
        result.update(
            changed=False,
            fail_on=options["fail_on"],
            baseline=options["baseline"] or "",
            history=options["history"] or "",
            hosts=list(hosts),
            findings=findings,
            written=written,
            failure=failure,
        )
        if hosts and options["fail"]:
            result.update(failed=True, msg=failure)
        if not seen_by_callback:
            for sentence in (f"Not seen: {BLIND}.", *ineffective()):
                self._display.warning(sentence)
        return result


def _summary(report: Report) -> dict[str, Any]:
    """The verdict in a line, and as what AWX calls artifacts: set_stats would give the same."""
    verdict = worth.verdict(report)
    totals = {"hosts": len(report.hosts), **report.states(), "findings": summary.status_totals(report)}
    planned = {"Planned for": verdict.planned} if verdict.planned else {}
    facts: dict[str, str] = {}
    for name, words in verdict.facts:
        facts[name] = f"{facts[name]}; {words}" if name in facts else words
    if verdict.command:
        facts[worth.NEXT] += f" ({verdict.command})"
    data = {"nearmetal": {**planned, "verdict": verdict.lead, **facts, "totals": totals}}
    more = {name: facts[name] for name in worth.SAID if name in facts}
    said = [[f"{name}: {words}." for name, words in part.items()] for part in (planned, more)]
    return {
        "msg": " ".join([*said[0], verdict.lead, *said[1]]),
        "ansible_stats": {"data": data, "per_host": False, "aggregate": True},
    }


def _join_hosts(given: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments joined with what the inventory says of every host: the task runs once, with the first one's."""
    fail_on = _list(given.get("fail_on"))
    paths = {name: {str(given[name]): "the play"} if given.get(name) else {} for name in _PATHS}
    for name in task_vars["ansible_play_hosts_all"]:
        host_variables = task_vars["hostvars"][name]
        fail_on += _list(host_variables.get("audit_fail_on"))
        for option, values in paths.items():
            if host_variables.get(f"audit_{option}"):
                values[str(host_variables[f"audit_{option}"])] = name
    for option, values in paths.items():
        if len(values) > 1:
            listed = " and ".join(f"{name} has {path}" for path, name in list(values.items())[:2])
            raise NearmetalError(f"audit_{option}: {_PATHS[option]}, but {listed}: name one with -e")
    return {
        "fail_on": list(dict.fromkeys(fail_on)),
        **{name: next(iter(values), None) for name, values in paths.items()},
    }


def _require_known_workload(task_vars: Mapping[str, Any]) -> None:
    """Raise NearmetalError for a wrong workload that all hosts have: each of them would say the same."""
    given = [task_vars["hostvars"][name].get("tune_workload") for name in task_vars["ansible_play_hosts_all"]]
    names = given[0].split(",") if isinstance(given[0], str) else given[0]
    if isinstance(names, list) and names and "auto" not in names and all(own == given[0] for own in given):
        require_known([str(name).strip() for name in names])


def _list(value: Any) -> list[Any]:
    try:
        return list(check_type_list(value or []))
    except TypeError:
        raise NearmetalError("audit_fail_on: a list of statuses is wanted, such as [would_change, failed]") from None


def _mistaken(registered: list[str], task_vars: dict[str, Any]) -> list[str]:
    """The hosts with a mistake in their options."""
    found = []
    for host in task_vars["ansible_play_hosts_all"]:
        results = [task_vars["hostvars"][host].get(name) for name in registered]
        if any(isinstance(result, dict) and result.get("mistake") is True for result in results):
            found.append(host)
    return found


def _collect(registered: list[str], task_vars: dict[str, Any]) -> Collector:
    collector = Collector()
    for name in task_vars["ansible_play_hosts_all"]:
        host_variables = task_vars["hostvars"][name]
        collector.expect([name])
        collector.groups(name, host_variables.get("group_names") or ())
        for variables in map(host_variables.get, registered):
            samples = allowances.read_samples(variables, time.time())
            if samples:
                collector.add_samples(name, samples)
            elif follows_contract(variables):
                collector.add(name, variables, failed=variables.get("failed") is True)
            elif isinstance(variables, dict) and variables.get("failed") is True:
                collector.failed(name, variables.get("msg") or "failed")
            elif isinstance(variables, dict) and variables.get("skipped") is True:
                collector.skipped([name])
    # Whoever is still in the play, and has no result, was left out by it.
    collector.skipped(task_vars["ansible_play_batch"])
    return collector
