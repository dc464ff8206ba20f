# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a fleet while it runs, one table at its end, and the reports as files."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
type: stdout
short_description: Show a fleet's findings as one table and write the reports
version_added: 0.1.0
description:
  - While modules of this collection run, one line shows how many hosts are done, what was found and the time left.
  - At the end it prints a table of hosts and concerns, with a mark per cell, and the most frequent findings.
  - It writes C(report.json), C(report.md), C(report.html), C(report.prom), C(report.junit.xml) and C(report.sarif),
    even when no host can be reached; then the last ones with hosts are kept in the folder C(last_good). A run without
    hosts leaves the reports of the last one as they are.
  - Tasks of other collections are shown as by P(ansible.builtin.default#callback), except that hosts where nothing
    changed are listed only with C(-v).
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - set as C(stdout_callback) in C(ansible.cfg)
options:
  report_directory:
    description:
      - The directory of the reports. It is created when absent.
      - A relative path is relative to the working directory.
    type: path
    default: "{{CWD}}/nearmetal-report"
    env:
      - name: NEARMETAL_REPORT_DIRECTORY
    ini:
      - section: nearmetal
        key: report_directory
"""

import atexit
import os
import sys
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ansible import constants as C
from ansible import context
from ansible.plugins.callback.default import CallbackModule as DefaultCallback
from ansible.utils.color import stringc

from ..module_utils._error import NearmetalError
from ..module_utils._words import lines_of
from ..plugin_utils._ansible import diffs, plays, results, variables
from ..plugin_utils._benchmark import sentences, store
from ..plugin_utils._benchmark.ranking import rankings
from ..plugin_utils._clean import NAME, text
from ..plugin_utils._files import brief, short_path
from ..plugin_utils._forms import terminal
from ..plugin_utils._forms.progress import Progress
from ..plugin_utils._forms.write import write_all
from ..plugin_utils._profile import document as profiled
from ..plugin_utils._prove import host_map
from ..plugin_utils._prove.page import heat_map
from ..plugin_utils._report import allowances, history, proven, run
from ..plugin_utils._report.collect import Collector

Record = Callable[[str, str], None]


class CallbackModule(DefaultCallback):
    """The default callback for other collections' tasks; for tasks of this collection, the fleet as a whole."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "nearmetal.ec2.fleet"

    def __init__(self) -> None:
        super().__init__()
        self._collector = Collector()
        self._progress = Progress(sys.stdout)
        self._clock = run.Clock()
        self._mode = ""  # audit | tune | restore; empty before the first play of nearmetal
        self._gate = run.GateTask()
        self._has_nearmetal_tasks = False  # whether the play has tasks of nearmetal
        # Hosts that failed before the play was known to be nearmetal's.
        self._early_failures: List[Tuple[Record, str, str]] = []
        self._proofs: Dict[str, host_map.Host] = {}
        self._benchmarked: List[str] = []
        self._said: Set[str] = set()  # messages of hosts that failed
        self._any_task_started = False  # whether any task started that plans a host
        self._unwritten = False  # whether there is no report, or a file of it couldn't be written
        self._ended = False  # whether Ansible came to the end of the run
        atexit.register(self._say_interrupted, os.getpid())
        self._others_played = False  # whether a play of somebody else is in the run, whose end is Ansible's recap

    def set_options(self, task_keys: Any = None, var_options: Any = None, direct: Any = None) -> None:
        super().set_options(task_keys=task_keys, var_options=var_options, direct=direct)
        if not self._display.verbosity:
            self.set_option("display_ok_hosts", False)
            self.set_option("display_skipped_hosts", False)

    def _say_interrupted(self, controller: int) -> None:
        """At the end of the process, not of a worker's, say what became of the reports of a run that was cut off."""
        if self._mode and not self._ended and os.getpid() == controller and self._collector.total():
            seen, total = self._collector.seen(), self._collector.total()
            when = f"was interrupted after {seen} of {total} hosts"
            if not self._any_task_started:
                when = "ended before it planned a host"
            self._print(f"No report written: the run {when}; the report of an earlier run stays", C.COLOR_ERROR)

    # --- plays and tasks ---

    def v2_playbook_on_play_start(self, play: Any) -> None:
        mode = plays.mode_of(play)
        self._play, self._has_nearmetal_tasks, self._early_failures = play, False, []
        if mode:
            self._join(mode)
        else:
            self._others_played |= not plays.is_of_collection(play)
            self._progress.erase()
            super().v2_playbook_on_play_start(play)

    def _join(self, mode: str) -> None:
        """Add the hosts of a play of nearmetal to the report."""
        self._has_nearmetal_tasks = True
        self._mode = plays.combined_mode(self._mode, mode)
        self._clock.saw(self._play)
        self._collector.expect(plays.hosts_of(self._play))
        for record, name, message in self._early_failures:
            record(name, message)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if plays.is_nearmetal_task(task):
            mode = plays.mode_of_task(task)
            self._any_task_started |= bool(mode)
            self._mode = plays.combined_mode(self._mode, mode)
            if mode and not self._has_nearmetal_tasks:
                self._join(mode)
            groups = [group.get_name() for group in host.get_groups() if group.get_name() != "all"]
            self._collector.groups(host.get_name(), groups)
            self._progress.show(self._collector, self._mode)
        super().v2_runner_on_start(host, task)

    # --- results ---

    def v2_runner_on_ok(self, result: Any) -> None:
        result = results.result_of(result)
        self._keep_proof(result)
        if plays.module_of(result.task) == plays.BENCHMARK:
            self._benchmarked.append(result.host.get_name())
        if self._take(result):
            return
        self._progress.erase()
        if self._print_lines(result):
            return
        shown = self.get_option("display_ok_hosts")
        # The output of a debug task is always shown.
        self.set_option("display_ok_hosts", shown or "_ansible_verbose_always" in result.result)
        super().v2_runner_on_ok(result)
        self.set_option("display_ok_hosts", shown)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        result = results.result_of(result)
        name = result.host.get_name()
        self._keep_proof(result, "failed")
        self._gate.note(result)
        if self._take(result, failed=not ignore_errors):
            if not ignore_errors:
                self._print_failure(result)
            return
        is_role_task = plays.is_nearmetal_task(result.task) or plays.checks_role_options(result.task)
        message = result.result.get("msg", "failed")
        is_role_task |= isinstance(message, str) and plays.refuses(result.task, self._play)
        message = str(message)
        if is_role_task:
            message = result.result["msg"] = variables.of_a_role(message)
        # A play that ignores it goes on without what the host would have reported.
        if not ignore_errors or plays.tunes(result.task):
            said = message if is_role_task else f"{result.task_name}: {message}"
            self._record_failure(self._collector.failed, name, said)
        if is_role_task and not self._display.verbosity:
            self._print_failure(result)
            return
        if self._print_lines(result):
            return
        self._progress.erase()
        super().v2_runner_on_failed(result, ignore_errors=ignore_errors)

    def v2_runner_on_skipped(self, result: Any) -> None:
        result = results.result_of(result)
        if plays.tunes(result.task):
            self._collector.skipped([result.host.get_name()])
        self._progress.erase()
        super().v2_runner_on_skipped(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        result = results.result_of(result)
        self._keep_proof(result, "unreachable")
        name, message = result.host.get_name(), text(result.result.get("msg", "")).removeprefix("Task failed: ")
        self._record_failure(self._collector.unreachable, name, message)
        if not self._has_nearmetal_tasks:
            self._progress.erase()
            super().v2_runner_on_unreachable(result)
            return
        line = f"✗ {text(name, NAME)}: unreachable: {message}"
        if line not in self._said:  # the way back asks such a host twice
            self._said.add(line)
            self._print(line, C.COLOR_UNREACHABLE)
        self._progress.show(self._collector, self._mode)

    def _keep_proof(self, result: Any, failure: str = "") -> None:
        """Remember the result of prove for a host; `failure` is failed or unreachable."""
        name, is_proof = result.host.get_name(), plays.module_of(result.task) == plays.PROVE
        proof = host_map.host_of(name, result.result, failure) if is_proof else None
        if proof is not None:
            self._proofs[name] = proof

    def _record_failure(self, record: Record, name: str, message: str) -> None:
        if self._has_nearmetal_tasks:
            record(name, message)
        else:
            self._early_failures.append((record, name, message))

    def v2_runner_item_on_ok(self, result: Any) -> None:
        result = results.result_of(result)
        if not self._take(result):
            self._progress.erase()
            super().v2_runner_item_on_ok(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        result = results.result_of(result)
        if not self._take(result, failed=True):
            self._progress.erase()
            super().v2_runner_item_on_failed(result)

    def v2_on_file_diff(self, result: Any) -> None:
        result = results.result_of(result)
        if not plays.is_nearmetal_task(result.task):
            self._progress.erase()
            super().v2_on_file_diff(result)
        # The actions of a fleet are in the report; --diff shows them per host.
        elif context.CLIARGS.get("diff"):
            self._progress.erase()
            with diffs.by_file(result.host.get_name(), result.result):
                super().v2_on_file_diff(result)

    def _take(self, result: Any, failed: bool = False) -> bool:
        """Whether this was a result of nearmetal, which is counted and not printed."""
        if not plays.is_nearmetal_task(result.task):
            return False
        self._print_warnings(result)
        if self._gate.take(result):
            return True
        samples = allowances.read_samples(result.result, time.time())
        if samples:
            self._collector.add_samples(result.host.get_name(), samples)
            return not self._display.verbosity
        if not results.follows_contract(result.result):
            # The result of a whole loop: its items were taken one by one, except those without a report.
            error = results.error_of_loop(result.result)
            if failed and error:
                self._collector.failed(result.host.get_name(), error)
            return "results" in result.result and bool(self._mode)
        self._collector.add(result.host.get_name(), result.result, failed=failed)
        self._progress.show(self._collector, self._mode)
        return True

    def _handle_warnings(self, res: Any) -> None:
        result = getattr(self, "_current_task_result", None)  # since ansible-core 2.19
        if result and plays.is_nearmetal_task(result.task):
            self._print_warnings(result)
        super()._handle_warnings(res)

    def _print_warnings(self, result: Any) -> None:
        """Show what a task of nearmetal warns of, once. A host wrote these texts too, so they are cleaned."""
        warnings, deprecations = results.warnings(result), results.deprecations(result)
        if warnings or deprecations:
            self._progress.erase()
        for warning in warnings if result.result.pop("warnings", None) else ():
            self._display.warning(text(warning))
        for deprecation in deprecations if result.result.pop("deprecations", None) else ():
            self._display.deprecated(text(deprecation))

    # --- the end ---

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._progress.erase()
        self._display.display("No host matches the play: check target, --limit and the inventory.", color=C.COLOR_SKIP)

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if not self._mode:
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        with suppress(BrokenPipeError):  # the reader of the output has ended (`| head`), and the reports are written
            self._end(stats)
        if self._unwritten and not any((*stats.failures.values(), *stats.dark.values())):
            raise SystemExit(2)  # whoever reads the files would read old ones, and nothing else tells Ansible

    def _end(self, stats: Any) -> None:
        self._ended = True
        self._progress.erase()
        if len(self._proofs) > 1:
            self._print_proofs(list(self._proofs.values()))
        if not self._mode:
            self._print_rankings()
            super().v2_playbook_on_stats(stats)
            return
        planned = self._any_task_started or self._collector.seen() or not self._collector.total()
        no_task = "" if planned else plays.no_task()
        if self._others_played or (no_task and stats.processed):
            super().v2_playbook_on_stats(stats)
        no_report = no_task or (run.NOTHING_PLANNED if self._gate.refuses(self._collector) else "")
        if no_report or not self._collector.total():
            self._unwritten = not self._others_played
            self._print(no_report or "No report written: the run had no hosts", C.COLOR_ERROR)
            return
        failures = [name for name, count in stats.failures.items() if count]
        self._collector.rescued(failures)
        if not failures and not any(stats.dark.values()):
            # Such a run didn't end early.
            self._collector.skipped(self._collector.names())
        self._finish()
        if stats.custom and self.get_option("show_custom_stats"):
            self._print(self._dump_results(stats.custom, indent=1))

    def _finish(self) -> None:
        this_run = self._clock.run(self._mode)
        earlier, past = self._gate.earlier_report(), self._gate.earlier_audits()
        blind_spots = [self._gate.complaint] if self._gate.complaint else []
        directory = str(self.get_option("report_directory"))
        proofs = proven.last(directory, self._collector.names())
        found = rankings(store.runs(directory), self._collector.names())
        profiles = profiled.last(directory, self._collector.names(), time.time())
        shown_directory = short_path(directory)
        report = self._collector.report(
            this_run, blind_spots, self._gate.statuses, earlier, shown_directory, proofs, found, past, profiles
        )
        written, errors = "", []
        # Before anything is printed: the reader of the output may have ended (`| head`).
        try:
            written = "Reports: " + brief(write_all(report, directory))
        except NearmetalError as error:
            errors.append(f"✗ {error}")
        try:
            if self._gate.history:
                history.keep(self._gate.history, report)
        except NearmetalError as error:
            errors.append(f"✗ {error}")
        self._unwritten |= bool(errors)
        for line in ("", *terminal.render(report, plays.columns(), _paint), "", *filter(None, [written])):
            self._print(line)
        for sentence in run.ineffective():
            self._display.warning(text(sentence))
        for line in errors:
            self._print(line, C.COLOR_ERROR)

    def _print_rankings(self) -> None:
        """How the hosts that were measured compare with others of their type, by every run that was written down."""
        runs = store.runs(str(self.get_option("report_directory"))) if self._benchmarked else {}
        for line in sentences.lines(rankings(runs, self._benchmarked), _paint, plays.columns()):
            self._print(line)

    def _print_proofs(self, hosts: List[host_map.Host]) -> None:
        for line in host_map.lines(hosts, _paint, plays.columns()):
            self._print(line)
        try:
            directory = str(self.get_option("report_directory"))
            self._print(f"  as a page: {short_path(heat_map.write(directory, hosts, time.time()))}")
        except NearmetalError as error:
            self._unwritten = True
            self._print(f"✗ {error}", C.COLOR_ERROR)

    def _print_failure(self, result: Any) -> None:
        name, message = text(result.host.get_name(), NAME), text(result.result.get("msg", ""))
        if self._mode and message in self._said and not self._display.verbosity:
            return  # the table names each host that failed so
        self._said.add(message)
        self._print("\n  ".join(lines_of(f"✗ {name}: {message}")), C.COLOR_ERROR)

    def _print_lines(self, result: Any) -> bool:
        """Whether a task of the collection's own playbooks said several lines, which are printed as they are."""
        lines = result.result.get("msg")
        if self._display.verbosity or not isinstance(lines, list) or not plays.is_of_collection(self._play):
            return False
        for line in lines:
            self._print(text(line))
        return True

    def _print(self, line: str, color: Optional[str] = None) -> None:
        self._progress.erase()
        self._display.display(line, color=color)


def _paint(line: str, color: str) -> str:
    if color == "bold":
        # Ansible has no name for bold, and refuses an unnamed SGR code.
        return f"\033[1m{line}\033[0m" if stringc("", "white") else line
    return stringc(line, color)
