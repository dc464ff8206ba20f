# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of prove: it measures the host step by step, decides, and keeps the tuning or restores. PRIVATE."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from typing import Any, Callable, Dict, Mapping, NoReturn, Protocol, Sequence

from ...module_utils._benchmark.host import load
from ...module_utils._error import NearmetalError
from ...module_utils._facts.host import Host
from ...module_utils._planning.options import validate
from ...module_utils._prove.host import load_sample
from ...module_utils._prove.host.proving import CONTROLLER, HOST, OPTIONS
from ...module_utils._prove.statistics import record_lines
from ...module_utils._prove.statistics.guards import CLIENT, GUARDS, PASSING, Firing, find_disturbances
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.record import Measurement
from ...module_utils._prove.statistics.rules import UNCLEAR, UNSAFE
from ...module_utils._prove.statistics.settings import longest_load
from ...module_utils._tasks.tuning import WANTED
from ...module_utils._words import sentence
from .._files import file_name, make_folder, short_path, writing
from .._files import write as write_file
from .._profile import pairs
from . import client, document, host_answers, inputs, knee, loop, reboots, results, sentences, signals
from . import log as record_log
from .figures import duration

_LONGEST_LOOK = 30.0  # seconds of one look at a host that isn't quiet


class Action(Protocol):
    """What a run asks of Ansible: the action plugin."""

    @property
    def secret(self) -> bool:
        """Whether the task has `no_log`."""

    def step(self, arguments: Mapping[str, Any], task_vars: Mapping[str, Any]) -> Dict[str, Any]:
        """One step on the host; its answer. Raises NearmetalError."""

    def on_client(self, name: str, task_vars: Dict[str, Any]) -> client.Client:
        """The client host of this name."""

    def reboot(self, within: int, task_vars: Mapping[str, Any], written: reboots.Written) -> None:
        """Reboot the host. Raises NearmetalError when it isn't back in time."""

    def unsafe_file(self) -> str:
        """A file that all hosts of this task have in common, and no other; empty without one."""

    def report_directory(self) -> str:
        """The directory of the run's record and reports."""

    def show(self, line: str) -> None:
        """Print a line while the task runs."""


class Run(loop.HostControl):
    """One run: its options, its record, and what it does to the host."""

    def __init__(self, action: Action, arguments: Mapping[str, Any], task_vars: dict[str, Any]) -> None:
        self._action, self._task_vars = action, task_vars
        self._parent = os.getppid()
        self._interrupts = signals.Interrupts()
        self._began = self._keeping = self._reboot_required = False
        self._set_by_others: list[str] = []
        self._written: list[str] = []  # of what was not tested
        self._profile: dict[str, Any] = {}
        self._busiest_programs: Any = None  # programs other than the load that used CPU time, the busiest first
        self._host = str(task_vars.get("inventory_hostname", ""))
        self._options = validate("prove", OPTIONS, arguments)
        self._options["tune"] = validate("prove.tune", WANTED, self._options["tune"])
        validate("prove.against", WANTED, self._options["against"])
        resumed = self._options["resume"]
        self._log = record_log.resume(resumed, self._host) if resumed else None
        self._settings = self._log.record.start.settings if self._log else inputs.settings(self._options)
        if self._log is not None:
            start = self._log.record.start
            self._options.update(command=start.load, load_on=start.load_on.split(", "))
            self._options.update(programs=list(start.programs), only=list(start.only), health=start.health)
            self._options.update(tolerate=list(start.tolerate), restart=start.restart)
        else:
            self._options["command"] = inputs.load_of(self._options, self._settings.seconds)
        self._wait_left = float(self._settings.wait)
        self._last_state: dict[str, str] = {}
        inputs.require_runnable(self._options)
        self._clients = self._find_clients()
        reboots.require_possible(self._settings, self._options, task_vars)
        path = self._log.path if self._log else self._new_path()
        self._base = path[: -len(".jsonl")] if path.endswith(".jsonl") else path
        self._arguments = results.arguments_for_steps(self._options, self._settings, os.path.basename(self._base))

    def _find_clients(self) -> client.Clients | None:
        """The client hosts, if the load runs on some. Raises NearmetalError when one can't be a client."""
        names = self._options["load_on"]
        if names in ([HOST], [CONTROLLER]):
            return None
        client.require(names, self._host, self._task_vars["hostvars"])
        return client.Clients([self._action.on_client(name, self._task_vars) for name in names])

    def preview(self) -> dict[str, Any]:
        """What a run would compare and how long it may take; the task's result in check mode."""
        answer = self._step("plan")
        if "nothing" in answer:
            return self._nothing_to_compare(str(answer["nothing"]))
        tested, untested = (host_answers.sentences(answer, name) for name in ("tested", "untested"))
        lines = sentences.plan(self._host, self._settings, tested, untested, sentences.tuning(self._options["against"]))
        absent = host_answers.sentences(answer, "absent")
        if absent:
            lines.append(f"  no process runs of {' or '.join(absent)}: prove_programs names those that serve the load")
        if self._settings.reboot:
            lines.append(f"  {reboots.announcement(self._settings)}")
        for line in (f"PROVE  {lines[0]}", *lines[1:]):
            self._action.show(line)
        return results.planned(lines, tested, untested)

    def result(self) -> dict[str, Any]:
        """Measure, decide, act; the task's result. Anything that ends the run early restores the host."""
        with writing(f"the record {self._base}.jsonl"):
            make_folder(self._base)
        if self._clients is None:
            return self._measured()
        try:
            self._clients.reach()
            return self._measured()
        finally:
            self._clients.leave()

    def _measured(self) -> dict[str, Any]:
        with signals.first_interrupts() as self._interrupts, signals.stderr_of(self._parent) as write:
            try:
                self._stop_after_unsafe()
                answer = self._step_around_reboot("begin")
                if "nothing" in answer:
                    return self._nothing_to_compare(str(answer["nothing"]))
                self._began = True
                compared = host_answers.begin(answer)
                if self._settings.reboot:
                    reboots.require_another_machine(answer.get("boot_id"))
                if self._options["at_knee"] and self._log is None:
                    self._offer_share_of_knee()
                log = self._log_of(compared)
                self._announce(log, compared.tested)
                result = loop.run_to_verdict(log, self, self._show_progress, longest_load(self._settings.seconds))
            except signals.Interrupted as interrupted:
                self._interrupted(str(interrupted), write)
            except (NearmetalError, OSError) as error:
                if os.getppid() != self._parent:
                    self._interrupted(signals.ANSIBLE_ENDED, write)
                self._abort(str(error), write)
            except BaseException:
                with suppress(NearmetalError):
                    self.restore()
                raise
            if result.verdict == UNSAFE:
                self._stop_others(result.reasons[0])
            ending = results.ending(log, compared, self._reboot_required, self._set_by_others, self._written)
            self._show_block(sentences.block(log.record, result, ending), write)
            # The reports quote the load's errors and figures, which may contain a secret too.
            try:
                reports = [] if self._action.secret else document.write(self._base, log.record, result, ending)
            except NearmetalError as error:
                raise NearmetalError(f"{sentences.summary(result, ending)}; but {error}") from None
        unmeasured = result.verdict == UNCLEAR and not result.pairs
        failed = {"failed": True} if unmeasured or result.verdict in self._options["fail_on"] else {}
        return {**results.ended(log.record, result, ending, log.path, reports), **self._profile, **failed}

    def _offer_share_of_knee(self) -> None:
        """Let each load of the run offer the rate at which the untuned host isn't late yet, or a share of it."""

        def run(command: str) -> Mapping[str, Any]:
            self._options["command"] = self._arguments["command"] = command
            return self.measure(UNTUNED, "", stays=bool(self._last_state)).load

        names, load = self._options["load_on"], self._options["command"]
        found = knee.load_at(self._options["at_knee"], load, len(names), run, self._action.show)
        self._options["command"] = self._arguments["command"] = found

    def _stop_others(self, reason: str) -> None:
        """Let the other hosts of this task end at their next step: what harmed this host may harm them."""
        with suppress(OSError):
            if self._action.unsafe_file():
                write_file(self._action.unsafe_file(), f"{self._host} was unsafe: {reason}")

    def _stop_after_unsafe(self) -> None:
        """Raise NearmetalError when another host of this task was unsafe."""
        with suppress(OSError), open(self._action.unsafe_file(), encoding="utf-8") as stream:
            raise NearmetalError(f"this run ends because {sentence(stream.read())}")

    def _show_block(self, lines: list[str], write: Callable[[str], None]) -> None:
        """Print the lines at the end of a run. To a terminal that needs them, `no_log` leaves the first: no figure."""
        if not self._output_is_lost():
            for line in lines:
                self._action.show(line)
            return
        for line in lines[:1] if self._action.secret else lines:
            write(line)

    def _output_is_lost(self) -> bool:
        """Whether Ansible shows nothing more of this run, neither a line nor its result."""
        return self._interrupts.received or os.getppid() != self._parent

    def _nothing_to_compare(self, reason: str) -> dict[str, Any]:
        """The result when both states are the same, for example on a host that needs no change."""
        if self._log is not None:
            raise NearmetalError(f"resume names a run that can't go on: {reason}")
        self._action.show(f"PROVE  {self._host}  nothing differs: {sentence(reason)}")
        return {"changed": False, "kept": False, "msg": f"nothing differs: {sentence(reason)}"}

    def measure(self, state: str, without: str, stays: bool = False) -> loop.Answer:
        if os.getppid() != self._parent:
            raise signals.Interrupted(signals.ANSIBLE_ENDED)
        self._stop_after_unsafe()
        self._last_state = {"state": state, "without": without}
        answer = self._step("measure", **self._last_state, stays=stays)
        self._busiest_programs = answer.get("others")
        if self._options["load_on"] == [HOST] or "ended" in answer:
            return host_answers.measured(answer, {"load": answer.get("load")})
        ran = self._ran_on_clients(self._clients) if self._clients else self._ran_on_controller()
        return host_answers.measured({**answer, **self._step("look", state=state, without=without)}, ran)

    def _ran_on_controller(self) -> dict[str, Any]:
        host = Host()
        before = load_sample.ticks(host)
        limit = longest_load(self._settings.seconds)
        result = load.run(self._options["command"], limit, lambda: os.getppid() == self._parent)
        busy = load_sample.busy(before, load_sample.ticks(host))
        result = result._replace(version=load.identify(self._options["command"]))
        return {"load": result._asdict(), "busy": () if busy is None else (busy,)}

    def _of_client(self) -> dict[str, Any]:
        programs = [*self._arguments["programs"], *self._arguments["tolerate"]]  # none of which a switch could end
        return {**{name: self._arguments[name] for name in ("command", "seconds")}, "programs": programs}

    def _ran_on_clients(self, clients: client.Clients) -> dict[str, Any]:
        answers = clients.load(self._of_client())
        self._busiest_programs = answers[0].get("others")
        before_and_after = {f"client_{name}": [answer.get(name) for answer in answers] for name in ("before", "after")}
        busy = [answer.get("busy") for answer in answers]
        return {"load": clients.merged(answers), "busy": () if None in busy else busy, **before_and_after}

    def wait_for_quiet(self, disturbances: Sequence[Firing]) -> None:
        if self._wait_left > 0:
            words = f"{GUARDS[disturbances[0].guard]} ({disturbances[0].detail})"
            self._action.show(f"{self._host}  waits up to {duration(self._wait_left)} for quiet: {words}")
        while self._wait_left > 0:
            began = time.monotonic()
            if not self._is_disturbed(disturbances[0].guard.startswith(CLIENT)):
                return
            self._wait_left -= time.monotonic() - began

    def _is_disturbed(self, client_too: bool) -> bool:
        """Whether other programs disturb a measurement in which nothing runs. The host stays in its state."""
        seconds = max(1.0, min(self._settings.seconds, self._wait_left, _LONGEST_LOOK))
        pause = {"command": f"sleep {seconds:g}", "load_on": [HOST], "timed": False}
        if client_too and self._clients is not None:
            answers = self._clients.load({**self._of_client(), **pause})
        else:
            answers = [self._step("measure", **{**self._last_state, "stays": True, **pause})]
        try:
            around = [
                [record_lines.sample_from(answer.get(name)) for name in ("before", "after")] for answer in answers
            ]
        except (NearmetalError, KeyError, TypeError):
            return False
        return any(guard in PASSING for samples in around for guard, _detail in find_disturbances(*samples))

    def profile(self) -> None:
        if self._options["profile"] and not self._action.secret:
            found = pairs.compare(
                lambda state: self._step("profile", state=state), self._settings.seed, self._host, self._base
            )
            self._action.show(f"{self._host}  profile: {found['says']}")
            self._profile = {"profile": found}

    def keep(self) -> bool:
        self._keeping = True
        self._interrupts.block()
        answer = self._step_around_reboot("keep")
        self._reboot_required = answer.get("reboot_required") is True
        self._written = host_answers.sentences(answer, "written") if "written" in answer else []
        return answer.get("kept") is True

    def restore(self) -> None:
        self._interrupts.block()
        self._step_around_reboot("back")

    def _step(self, name: str, **arguments: Any) -> dict[str, Any]:
        # The host completes a step that is interrupted here, and this one would begin what was just taken back.
        with self._interrupts.postponed() if name == "begin" else nullcontext():
            return self._action.step({**self._arguments, **arguments, "step": name}, self._task_vars)

    def reboot_into(self, state: str) -> float:
        began = time.monotonic()
        self._reboot(reboots.written(state, self._step("switch", state=state)))
        return time.monotonic() - began

    def _step_around_reboot(self, name: str) -> dict[str, Any]:
        """A step after which the host may have to be rebooted, and then the step be done again."""
        answer = self._step(name)
        if self._settings.reboot and answer.get("reboot") is True:
            self._reboot(reboots.written(TUNED if answer.get("kept") is True else UNTUNED, answer))
            answer = self._step(name)
        self._set_by_others = host_answers.sentences(answer, "set_by_others") if "set_by_others" in answer else []
        return answer

    def _reboot(self, written: reboots.Written) -> None:
        self._action.reboot(self._settings.reboot_within, self._task_vars, written)

    def _log_of(self, compared: host_answers.Begun) -> record_log.Log:
        """A new record, or the resumed one. Raises NearmetalError when the resumed run compared other states."""
        if self._log is None:
            start = results.start(self._host, time.time(), self._settings, self._options, compared)
            return record_log.begin(f"{self._base}.jsonl", start)
        results.require_same(self._log.record.start, compared)
        return self._log

    def _announce(self, log: record_log.Log, tested: list[str]) -> None:
        settings = self._settings
        self._action.show(
            f"{self._host}  {log.record.start.against or 'untuned'} against tuned ({', '.join(tested)}),"
            f" at most {settings.pairs} pairs, seed"
            f" {settings.seed}, record {short_path(log.path)}"
        )
        if settings.reboot:
            self._action.show(f"{self._host}  {reboots.announcement(settings)}")

    def _show_progress(self, log: record_log.Log, _measurement: Measurement) -> None:
        self._action.show(sentences.progress(log.record, host_answers.busiest(self._busiest_programs)))

    def _interrupted(self, reason: str, write: Callable[[str], None]) -> NoReturn:
        """Restore the host, and print what became of it. Raises NearmetalError that says the same."""
        write(f"{self._host}  {reason}: restoring the host …")
        gone = "its timer or a person had taken the host back" if self._began else "nothing was switched"
        self._abort(reason, write, gone)

    def _abort(self, reason: str, write: Callable[[str], None], nothing_to_restore: str = "") -> NoReturn:
        """Restore the host. Raises NearmetalError with the reason, and whether the host was restored.

        `nothing_to_restore` is said of a host that has no experiment.
        """
        try:
            self._interrupts.block()
            ended = self._step_around_reboot("back").get("ended") is True
            message = f"{reason}{self._outcome(ended, nothing_to_restore)}"
        except NearmetalError as error:
            message = results.not_restored(
                reason, str(error), self._settings, self._options, self._began, self._keeping
            )
        if self._output_is_lost():
            write(f"{self._host}  {message}")
        raise NearmetalError(message)

    def _outcome(self, ended: bool, nothing_to_restore: str) -> str:
        """What is said of the host and the record after the reason."""
        if self._keeping and not ended:
            return "; the host may be tuned already: run an audit to see"
        record = f"{self._base}.jsonl"
        resume_hint = f"; to resume, set prove_resume: {short_path(record)}" if os.path.exists(record) else ""
        others = f", but for what somebody else set: {'; '.join(self._set_by_others)}" if self._set_by_others else ""
        state = f"the host is as it was before{others}" if ended else nothing_to_restore
        return f"{': ' if state else ''}{state}{resume_hint}"

    def _new_path(self) -> str:
        name = file_name(self._host)
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return os.path.join(self._action.report_directory(), "prove", f"{name}-{when}-{self._settings.seed}.jsonl")
