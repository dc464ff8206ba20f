# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A life of a host, step by step, and what must hold after each of them and at its end."""

from __future__ import annotations

import io
import json
import random
import re
import traceback
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import report
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Origin
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.choice import choose

from tests.support.kernel.boot import conditions_hold
from tests.support.sequences.faults import Killed, Writes
from tests.support.sequences.left import PLACES, Left, said_by
from tests.support.sequences.status import untrue
from tests.support.sequences.wanted import Step, steps
from tests.support.sequences.world import HOSTS, KILLED, World, changed

# Leftovers of a killed run too: the next run removes them.
_ALWAYS = r"/var/lib/nearmetal/.*|/run/nearmetal/.*|/run/systemd/system/nearmetal-dead-man\..*|.*/\.[^/]+\.new"
_SOMEBODY = {
    r"/proc/sys/net/core/(somaxconn|netdev_max_backlog|rmem_max)": ("3333", "77777"),
    r"/proc/sys/net/ipv4/tcp_(max_syn_backlog|keepalive_time)": ("3333", "77"),
    r"/proc/sys/(kernel/numa_balancing|vm/zone_reclaim_mode|vm/overcommit_memory)": ("0", "1"),
    r"/proc/sys/vm/(swappiness|dirty_ratio|dirty_background_ratio)": ("33", "77"),
    r"/proc/sys/vm/(dirty_bytes|dirty_background_bytes)": ("3333333", "7777777"),
    r"/sys/kernel/mm/ksm/run": ("1", "2"),
    r"/proc/irq/\d+/smp_affinity_list": ("0", "1"),
    r"/sys/class/net/[^/]+/queues/rx-\d+/rps_cpus": ("1", "2"),
    r"/sys/class/net/[^/]+/queues/rx-\d+/rps_flow_cnt": ("64", "128"),
    r"/sys/class/net/[^/]+/queues/tx-\d+/xps_cpus": ("1", "2"),
    r"/sys/class/net/[^/]+/mtu": ("1400", "1300"),
    r"/sys/devices/system/cpu/cpufreq/policy\d+/scaling_governor": ("powersave", "schedutil"),
    r"/sys/devices/system/cpu/cpu\d+/cpuidle/state\d/disable": ("1", "0"),
    r"/sys/devices/system/cpu/cpu[1-9]\d*/online": ("0", "0"),
    r"/sys/devices/system/cpu/cpu\d+/power/energy_perf_bias": ("15", "4"),
    r"/sys/devices/system/cpu/intel_uncore_frequency/[^/]+/min_freq_khz": ("900000", "1200000"),
    r"/sys/firmware/acpi/platform_profile": ("low-power", "performance"),
    r"/sys/kernel/mm/transparent_hugepage/(enabled|defrag)": ("always", "never"),
    r"/sys/devices/system/node/node\d/hugepages/hugepages-2048kB/nr_hugepages": ("7", "9"),
    r"/sys/devices/system/clocksource/clocksource0/current_clocksource": ("acpi_pm", "hpet"),
    r"/sys/block/\w+/queue/(read_ahead_kb|nomerges|rq_affinity)": ("1", "2"),
}
_FILES = {
    "/etc/sysctl.d/50-site.conf": "net.core.somaxconn = 5000\nnet/ipv4/tcp_keepalive_time=55\n",
    "/etc/sysctl.d/99-zz.conf": "net.core.rmem_max = 333333\nvm.dirty_bytes = 33333333\n",
    "/etc/tmpfiles.d/site.conf": "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\n",
    "/etc/udev/rules.d/60-site.rules": 'ACTION=="add|change", SUBSYSTEM=="block", ATTR{queue/read_ahead_kb}="64"\n',
    "/etc/systemd/network/10-site.link": "[Match]\nOriginalName=ens* eth*\n\n[Link]\nMTUBytes=1450\n",
}
# Sentences about an original value that is no longer known, and about the arguments of the running kernel.
_EARLIER = "in an earlier boot|what it was before nearmetal|and chooses anew when it changes"
_WAITS = f"{_EARLIER}|the running kernel (was booted with|still has)"
_NEWER = {"knob": "fans", "what": "cooling.fans", "where": "left", "original": {"rpm": [1]}, "ours": [{"rpm": None}]}

# Keys of an entry that earlier versions of it don't know.
_MARKS = ("whole", "disturbed_by", "device", "attachment", "written", "machine")


class Life:
    """Carries out the steps in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = world.host
        self._steps = 0
        self._said: List[str] = []  # of the present step
        self._just_tuned: Set[str] = set()  # concerns for which a second run has found nothing to do
        self._left = Left(self.host, world.twin)
        self.host.writing = self._writing

    def do(self, step: Step) -> None:
        """Do a step, and check what must hold after every step."""
        self._just_tuned = set()
        getattr(self, f"_{step.name}")(step)
        known = self.world.journal() is not None
        self._look_at_what_is_left(known)
        self._steps += 1
        if not known or self._steps % 3 == 0:
            self._status_tells_the_truth()

    def end(self) -> None:
        """Restore: nearmetal's changes are taken back, and foreign ones are left."""
        world = self.world
        world.replug([])
        self._quietly(["confirm"])
        self._run(lambda known: restore_requests(None, known))
        now, twin = (sorted(host.cpus.online) for host in world.both())
        assert world.waits or now == twin, f"after restore CPUs {now} are online, should be {twin}"
        world.back_online()  # what was set on them can be restored now
        done = self._run(lambda known: restore_requests(None, known))
        assert not _errors(done), f"restore: {_errors(done)}"
        assert world.journal() is None, f"restore left {world.journal()}"
        self._look_at_what_is_left(known=False)
        assert not world.differences(), "after restore:\n" + "\n".join(world.differences())
        if not world.waits and not world.strict and not world.origins:
            return  # both are alike, so they boot alike
        world.reboot()
        assert not world.differences(), "after restore and a reboot:\n" + "\n".join(world.differences())

    def _writing(self, path: str) -> None:
        self.world.engine_wrote(path)
        self._left.writing(path)

    def _look_at_what_is_left(self, known: bool) -> None:
        self._left.heard(self._said)
        self._said = []
        unsaid = [] if known else self._left.unsaid()
        assert not unsaid, "left, and not said:\n" + "\n".join(unsaid)

    # What happens.

    def _tune(self, step: Step) -> None:
        given = dict(step.given)
        within = given.pop("confirm_within")
        named, auto = given.pop("workloads", None), given.pop("workload_auto", "advise")
        program = given.pop("program", None)

        def doing(check: bool = False) -> Run:
            chosen = choose(self.host, named, auto, {}, prune=given["prune"], program=program)
            extra = {"workloads": chosen.names, "findings": chosen.findings, "programs": chosen.programs, **given}
            extra.update(claims=chosen.asking.claims, asking=chosen.asking.programs)

            def ask(known: Any) -> Any:
                return tune_requests(common={"owner_conflict": "take_over"}, on_host=known, **extra)

            return self._run(ask, check, within, chosen.run)

        if step.fault is not None:
            self._faulty(step, doing)
            return
        if self._steps % 2:  # each costs a run, so a tune has one of them
            self._as_promised(doing)
            return
        done, _output = _tried(doing)
        if done is not None and not _errors(done) and not within:
            again, output = _tried(partial(doing, check=True))
            assert again is not None, f"a second run fails: {output}"
            left = [action for outcome in again.outcomes for action in outcome.plan.actions]
            assert not left, f"a second run has more to do: {left}"
            # A concern that the run leaves as it is has only a finding about that.
            left_out = {outcome.name for outcome in done.outcomes if _left_out(outcome.plan.findings)}
            self._just_tuned = {outcome.name for outcome in done.outcomes} - left_out

    def _as_promised(self, doing: Callable[..., Run]) -> None:
        before = self.world.snapshot()
        promised, refusal = _tried(partial(doing, check=True))
        assert not changed(before, self.world.snapshot()), "check mode wrote"
        done, output = _tried(doing)
        assert refusal == output or "waits to be confirmed" in output, f"check said {refusal!r}, tune {output!r}"
        if done is not None and promised is not None:
            self._did_what_check_said(promised, done, changed(before, self.world.snapshot()))

    def _did_what_check_said(self, promised: Run, done: Run, paths: Sequence[str]) -> None:
        done_of = {outcome.name: outcome for outcome in done.outcomes if not outcome.error}
        for outcome in promised.outcomes:
            if outcome.name in done_of and not outcome.error:
                actions = done_of[outcome.name].plan.actions
                assert outcome.plan.actions == actions, f"check said {outcome.plan.actions}, tune did {actions}"
        said = _errors(promised)
        broken = {name: error for name, error in _errors(done).items() if name not in said and "refused" not in error}
        assert not broken, f"check promised {sorted(done_of)}, and tune failed: {broken}"
        kinds = {action.what.split(".")[0] for outcome in promised.outcomes for action in outcome.plan.actions}
        expected = re.compile("|".join([_ALWAYS, *(PLACES[kind] for kind in kinds)]))
        beyond = [path for path in paths if not expected.fullmatch(path)]
        assert not beyond, f"check promised {sorted(kinds)}, and these changed: {beyond}"

    def _restore(self, step: Step) -> None:
        names = [step.given["concern"]] if step.given["concern"] else None
        self._faulty(step, partial(self._run, lambda known: restore_requests(names, known)))

    def _reapply(self, step: Step) -> None:
        self._faulty(step, partial(self._quietly, ["reapply"]))

    def _reboot(self, step: Step) -> None:
        self.world.reboot()
        self._left.booted()
        unit = Path(self.host.root) / "etc/systemd/system/nearmetal.service"
        wanted = [*(Path(self.host.root) / "etc/systemd/system").glob("*.wants/nearmetal.*")]
        if step.given["unit"] and wanted and unit.exists() and conditions_hold(Path(self.host.root), unit.read_text()):
            self._faulty(step, partial(self._quietly, ["reapply", "--if-changed"]))

    def _somebody(self, step: Step) -> None:
        draw, other = step.given["draw"], step.given["other"]
        pattern = _pick(sorted(_SOMEBODY), draw)
        touched = [path for path in self._left.written() if any(re.fullmatch(place, path) for place in _SOMEBODY)]
        if touched and other * 13 % 1 < 0.7:
            path = _pick(touched, draw)
            pattern = next(pattern_of_place for pattern_of_place in _SOMEBODY if re.fullmatch(pattern_of_place, path))
            if self.world.somebody(path, _pick(_SOMEBODY[pattern], other)):
                self._left.somebody(path)
            return
        root = Path(self.world.twin.root)
        top = root / ("proc" if pattern.startswith("/proc") else pattern.split("/")[1] + "/" + pattern.split("/")[2])
        found = sorted(f"/{path_of_file.relative_to(root)}" for path_of_file in _files(top))
        found = [path for path in found if re.fullmatch(pattern, path)]
        if found:
            self.world.somebody(_pick(found, other * 7 % 1), _pick(_SOMEBODY[pattern], other))

    def _their_file(self, step: Step) -> None:
        path = _pick(sorted(_FILES), step.given["draw"])
        self.world.their_file(path, _FILES[path] if step.given["other"] < 0.7 else None)

    def _unplug(self, step: Step) -> None:
        found = [
            device["name"]
            for kind in ("nics", "disks")
            for device in self.world.spec.get(kind, ())
            if device.get("mount") is None and not device.get("members")
        ]
        below = {name[:7] for disk in self.world.spec.get("disks", ()) for name in disk.get("members", ())}
        free = [name for name in found if name not in self.world.away and name not in below]
        if free:
            self.world.replug([*self.world.away, _pick(free, step.given["draw"])])

    def _plug(self, _step: Step) -> None:
        self.world.replug([])

    def _programs(self, step: Step) -> None:
        self.world.start(step.given["names"])

    def _rename(self, step: Step) -> None:
        nics = [nic["name"] for nic in self.world.spec.get("nics", ())]
        if nics:
            name = _pick(nics, step.given["draw"])
            live = step.given["other"] < 0.5
            other = f"enx{len(name)}{name[-1]}"
            self.world.rename(name, other, live)
            self._left.renamed(name, other)
            if not live:
                self.world.reboot()
                self._left.booted()

    def _confirm(self, _step: Step) -> None:
        self._quietly(["confirm"])

    def _dead_man(self, _step: Step) -> None:
        self._quietly(["expire", "dead-man"])

    def _newer(self, step: Step) -> None:
        """Put entries of a newer version into the journal for a while: nothing is changed, and nothing is lost."""
        journal = self.world.journal()
        if journal is not None:
            concern = journal["entries"][0]["concern"] if step.given["draw"] < 0.5 else "cooling"
            unknown = {"concern": concern, "boot_id": self.host.boot_id(), **_NEWER}
            newer = {**journal, "nearmetal": "99.0.0", "entries": [*journal["entries"], unknown]}
            self._write_journal(newer)
            code, printed = self._quietly(["restore"])
            assert code == 1
            assert "use nearmetal 99.0.0 or a newer one" in printed
            assert self.world.journal() == newer, "what a newer version kept is lost"
            self._write_journal(journal)

    def _older(self, _step: Step) -> None:
        """An older version writes the journal again, without the marks that it doesn't know."""
        journal = self.world.journal()
        if journal is not None and all(entry.get("whole", True) for entry in journal["entries"]):
            known = [{key: value for key, value in entry.items() if key not in _MARKS} for entry in journal["entries"]]
            self._write_journal({**journal, "entries": known})

    def _write_journal(self, content: Mapping[str, Any]) -> None:
        place = Path(self.host.root) / "var/lib/nearmetal/journal.json"
        place.write_text(json.dumps(content))
        if not content["entries"]:
            place.unlink()

    # How.

    def _run(
        self, ask: Callable[[Any], Any], check: bool = False, confirm_within: int = 0, name: str = "nearmetal"
    ) -> Run:
        done = (plan_run if check else run)(
            self.host, ask, conditions=Conditions(Origin(name), confirm_within=confirm_within)
        )
        if not check:
            waiting = re.compile(_WAITS if self.world.boots else _EARLIER)
            said = [
                f"{finding.concern}.{finding.knob} {finding.where}: {finding.reason}"
                for outcome in done.outcomes
                for finding in outcome.plan.findings
            ]
            self.world.waits.update(sentence for sentence in said if waiting.search(sentence))
            self._said += said_by(done)
        return done

    def _faulty(self, step: Step, doing: Callable[[], Any]) -> None:
        """Do it while writes fail, or the run dies at one."""
        writes = Writes(self.host, step.fault)
        try:
            with writes.counted():
                doing()
        except Killed:
            self._left.quiet = True
            if self.world.boots:
                self.world.waits.add(KILLED)
        except NearmetalError:
            return

    def _quietly(self, words: List[str]) -> Tuple[int, str]:
        """The command's status, and what it printed; below the line of a concern it names what it left."""
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            code = command(words, self.host)
        printed = out.getvalue()
        self._said += [line for line in printed.splitlines() if line.startswith("  ")]
        if self.world.boots:
            self.world.waits.update(line for line in printed.splitlines() if re.search(f"{_WAITS}|next boot", line))
        return code, printed

    def _status_tells_the_truth(self) -> None:
        found = report.collect(self.host)
        if self.world.journal() is None and not (Path(self.host.root) / "var/lib/nearmetal/wanted.json").exists():
            shown = [knob for concern in found["concerns"] for knob in concern["knobs"]]
            still = [knob for knob in shown if knob["status"] not in ("needs_reboot", "advice")]
            assert not still, f"status still shows {still}"
        twin, origins = Path(self.world.twin.root), set(self.world.origins)
        wrong = list(untrue(found, Path(self.host.root), twin, origins, self.world.boots))
        assert not wrong, "status:\n" + "\n".join(wrong)
        drift = [name for name in found["drift"] if name.split(".")[0] in self._just_tuned]
        assert not drift, f"status shows {drift} as not as wanted, and tune has nothing to do"


def _left_out(findings: Sequence[Finding]) -> bool:
    """Whether a run reports that it leaves a concern as it is."""
    return any(finding.reason.startswith(("not in this run", "no option was given")) for finding in findings)


def _errors(done: Run) -> Dict[str, str]:
    return {outcome.name: outcome.error for outcome in done.outcomes if outcome.error}


def _tried(act: Callable[[], Run]) -> Tuple[Optional[Run], str]:
    try:
        return act(), ""
    except NearmetalError as error:
        return None, str(error)


def _pick(choices: Sequence[Any], draw: float) -> Any:
    return choices[int(draw * len(choices)) % len(choices)]


def _files(top: Path) -> List[Path]:
    return [path for path in top.rglob("*") if path.is_file()]


# The errors that an injected fault may raise, except Killed.
_FAILURES = (AssertionError, AttributeError, LookupError, NearmetalError, OSError, RuntimeError, TypeError, ValueError)


def lived(folder: Path, name: str, life: Sequence[Step]) -> str:
    """Live the life of a seed; return the last lines of its failure."""
    done = Life(World(folder / name, name))
    try:
        for step in life:
            done.do(step)
        done.end()
    except _FAILURES:
        return traceback.format_exc()
    return ""


def failure(seed: int, folder: Path, draw: Callable[[random.Random], List[Step]] = steps) -> str:
    """What goes wrong in the life that is drawn with a seed, with the steps that it takes; empty when all is well."""
    rng = random.Random(seed)
    name = rng.choices(list(HOSTS), list(HOSTS.values()))[0]
    life = draw(rng)
    trouble = lived(folder, name, life)
    if not trouble:
        return ""
    for step in list(life):
        shorter = [kept for kept in life if kept is not step]
        again = lived(folder, name, shorter)
        if again and _kind(again) == _kind(trouble):
            life, trouble = shorter, again
    lines = "\n".join(f"  {step}" for step in life)
    return f"NEARMETAL_SEED={seed}, on {name}:\n{lines}\n{trouble[-3000:]}"


def _kind(trouble: str) -> str:
    """The last frame and the first words of a failure, to find a shorter life that fails alike."""
    places = re.findall(r"^  File .*$", trouble, re.MULTILINE)
    return places[-1] + trouble[trouble.rindex(places[-1]) :].split("Error")[-1][:40]
