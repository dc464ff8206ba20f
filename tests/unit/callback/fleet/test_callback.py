# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit as a user runs it: the terminal's output and the files, whatever happens to the hosts."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, Fleet, finding, result_with
from tests.support.report.judged import checked, states, well

MIXED = {
    "db1": {
        "module_result": result_with(SLOW_CLOCK, finding("numa", "refused", "balancing", reason="pinned by kubelet"))
    },
    "db2": {"module_result": result_with(GOOD_CLOCK, finding("numa", "ok", "balancing"))},
    "gone": {"fate": "unreachable"},
    "dead": {"fate": "dies"},
}


def test_mixed_fleet(fleet: Fleet) -> None:
    fleet.inventory(MIXED)
    run = fleet.run()
    shown = well(run)
    assert run.returncode == 4  # Ansible's own exit code for unreachable hosts
    assert states(checked(fleet)) == {"db1": "reported", "db2": "reported", "dead": "failed", "gone": "unreachable"}
    assert re.search(r"^AUDIT  4 hosts", shown, re.M)
    assert not re.search(r'[\[,] ?"all"', (fleet.reports / "report.html").read_text()), "this group chooses nothing"
    assert re.search(r"^db1 +●  !$", shown, re.M)
    assert re.search(r"^db2 +✓  ✓$", shown, re.M)
    assert re.search(r"^gone +unreachable$", shown, re.M)
    assert "the host went away in the middle of the module" in shown
    assert "clocksource.source  xen → tsc" in shown
    assert "tsc is read in user space by the vDSO, without a system call" in shown
    assert "12.00 s on xen, 2.00 s on tsc" in shown
    assert "ansible-playbook nearmetal.ec2.tune -i hosts.json --limit db1" in shown
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_all_unreachable(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "unreachable"}, "h2": {"fate": "unreachable"}})
    run = fleet.run()
    assert run.returncode == 4
    assert "✗ h1, h2: unreachable: " in well(run)
    assert set(states(checked(fleet)).values()) == {"unreachable"}


def test_an_inventory_without_hosts_leaves_the_reports_alone(fleet: Fleet) -> None:
    fleet.inventory({})
    fleet.reports.mkdir()
    (fleet.reports / "report.json").write_text("an earlier one")
    (fleet.folder / "site.yml").write_text("- hosts: all\n  gather_facts: false\n  roles: [nearmetal.ec2.audit]\n")
    assert "No report written: the run had no hosts\n" in well(fleet.run(playbook=str(fleet.folder / "site.yml")))
    assert [path.read_text() for path in fleet.reports.iterdir()] == ["an earlier one"]


@pytest.mark.parametrize(
    ("option", "tag", "why"),
    [
        ("--tags", "clocksource", "--tags clocksource leaves no task of nearmetal.ec2 that plans a host"),
        ("--tags", "limits", "--tags limits leaves no task of nearmetal.ec2 that plans a host"),
        ("--start-at-task", "no such", "--start-at-task no such leaves no task of nearmetal.ec2 that plans a host"),
        ("--skip-tags", "audit", "--skip-tags audit leaves no task of nearmetal.ec2 that plans a host"),
    ],
)
def test_tags_that_leave_no_task_leave_the_reports_alone(fleet: Fleet, option: str, tag: str, why: str) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    fleet.reports.mkdir()
    (fleet.reports / "report.json").write_text("an earlier one")
    run = fleet.run(option, tag)
    assert f"No report written: {why}\n" in run.stdout
    assert run.returncode == 2, "a pipeline would take it for an audit"
    assert [path.read_text() for path in fleet.reports.iterdir()] == ["an earlier one"]


def test_limit(fleet: Fleet) -> None:
    fleet.inventory(MIXED)
    well(fleet.run("--limit", "db2,gone"))
    assert states(checked(fleet)) == {"db2": "reported", "gone": "unreachable"}


def test_hosts_that_die_half_way_keep_their_results(fleet: Fleet) -> None:
    fleet.inventory(
        {"h1": {"module_result": result_with(SLOW_CLOCK)}, "h2": {"module_result": result_with(GOOD_CLOCK)}}
    )
    play = fleet.folder / "site.yml"
    play.write_text(
        "- hosts: all\n  gather_facts: false\n  roles: [nearmetal.ec2.tune]\n  tasks:\n"
        "    - name: Restart the database\n      ansible.builtin.fail: {msg: no such unit}\n"
        "      when: inventory_hostname == 'h1'\n"
    )
    run = fleet.run(playbook=str(play))
    report = checked(fleet)
    assert run.returncode == 2
    assert report["run"]["mode"] == "tune"
    assert states(report) == {"h1": "failed", "h2": "reported"}
    assert report["hosts"][0]["message"] == "Restart the database: no such unit"
    assert report["hosts"][0]["findings"][0]["now"] == "xen"
    assert "TASK [Restart the database]" in well(run)
    assert "no such unit" in run.stdout


def test_max_fail_percentage_leaves_later_hosts_silent(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "dies"}, "h2": {"module_result": result_with(GOOD_CLOCK)}})
    play = fleet.folder / "site.yml"
    play.write_text(
        "- hosts: all\n  gather_facts: false\n  serial: 1\n  max_fail_percentage: 0\n  roles: [nearmetal.ec2.tune]\n"
    )
    well(fleet.run(playbook=str(play)))
    assert states(checked(fleet)) == {"h1": "failed", "h2": "silent"}


def test_all_batches_are_in_one_report(fleet: Fleet) -> None:
    fleet.inventory({f"h{number}": {"module_result": result_with(GOOD_CLOCK)} for number in range(5)})
    play = fleet.folder / "site.yml"
    play.write_text("- hosts: all\n  gather_facts: false\n  serial: 2\n  roles: [nearmetal.ec2.tune]\n")
    run = fleet.run(playbook=str(play))
    assert well(run).count("TUNE") == 1
    others = dict.fromkeys(("failed", "unreachable", "skipped", "silent"), 0)
    assert checked(fleet)["totals"]["hosts"] == {"all": 5, "reported": 5, **others}


def test_a_concern_that_failed_is_named(fleet: Fleet) -> None:
    result = result_with(GOOD_CLOCK, errors={"hugepages": "the kernel took 3 of 10 pages"}, msg="hugepages: 3 of 10")
    fleet.inventory(
        {
            "h1": {"module_result": result, "fate": "fails"},
            "h2": {"module_result": result_with(GOOD_CLOCK)},
            "h3": {"module_result": result_with(GOOD_CLOCK), "audit_timeout": "soon"},
        }
    )
    run = fleet.run()
    assert run.returncode == 2
    (wrong,) = (line for line in well(run).splitlines() if line.startswith("✗ h3: audit_timeout must be"))
    assert "audit_timeout" in wrong
    assert "argument_spec" not in run.stdout
    assert re.search(r"^h1 +✓  ✗$", well(run), re.M)
    assert "the kernel took 3 of 10 pages" in run.stdout
    assert checked(fleet)["totals"]["findings"]["failed"] == 1


def test_one_host_shows_every_knob(fleet: Fleet) -> None:
    fleet.inventory({"db1": MIXED["db1"]})
    shown = well(fleet.run())
    assert re.search(r"concern +knob +now +wanted +why", shown)
    assert re.search(r"● clocksource +source +xen +tsc +tsc is read", shown)
    assert "To apply the changes: ansible-playbook nearmetal.ec2.tune -i hosts.json --limit db1" in shown


def test_a_difference_names_its_host_and_its_file(fleet: Fleet) -> None:
    diff = {
        "before": {"clock": {"current": "xen"}, "files": {"/etc/a.conf": "a = 1\n"}, "wanted": {"clocksource": None}},
        "after": {"clock": {"current": "tsc"}, "files": {"/etc/a.conf": "a = 2\n"}, "wanted": {"clocksource": {}}},
    }
    fleet.inventory({name: {"module_result": result_with(SLOW_CLOCK, diff=diff)} for name in ("h1", "h2")})
    shown = well(fleet.run("--diff"))
    for host in ("h1", "h2"):
        assert f"--- before: {host}, settings\n+++ after: {host}, settings\n" in shown
        assert f"+++ after: {host}, /etc/a.conf\n@@ -1 +1 @@\n-a = 1\n+a = 2\n" in shown
    assert '"wanted"' not in shown
    assert "+++ after" not in fleet.run().stdout


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
@pytest.mark.parametrize("folder", ["reports", "my reports: all, of them"])
def test_the_fix_of_many_hosts_is_for_those_hosts(fleet: Fleet, callback: str, folder: str) -> None:
    fleet.reports = fleet.folder / folder
    good = MIXED["db2"]
    fleet.inventory({"h0": MIXED["db1"], **{f"h{n}": good if n == 3 else MIXED["db1"] for n in range(1, 7)}})
    only = '{"tune_workload": "cache", "audit_fail_on": []}'
    run = fleet.run("--limit", "!h0", "-e", only, callback=callback, NEARMETAL_REPORT_DIRECTORY=str(fleet.reports))
    well(run)
    fix = checked(fleet)["top"][0]["fix"]
    assert fix.startswith("ansible-playbook nearmetal.ec2.tune -i hosts.json -e tune_workload=cache --limit ")
    assert callback == "ansible.builtin.default" or f"{fix}\n" in run.stdout
    assert hosts_of(fleet, fix) == ["h1", "h2", "h4", "h5", "h6"]
    # What was copied from an older report never tunes other hosts.
    fleet.inventory({f"h{n}": MIXED["db1"] for n in range(7)})
    well(fleet.run(callback=callback, NEARMETAL_REPORT_DIRECTORY=str(fleet.reports)))
    assert hosts_of(fleet, fix) == ([] if folder == "reports" else ["h1", "h2", "h4", "h5", "h6"])
    assert hosts_of(fleet, checked(fleet)["top"][0]["fix"]) == [f"h{n}" for n in range(7)]


def hosts_of(fleet: Fleet, command: str) -> List[str]:
    """The hosts of a pasted command; none if it is refused."""
    environment = {**fleet.environment(), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    listed = subprocess.run(
        ["/bin/bash", "-c", f"{command} --list-hosts"],
        cwd=fleet.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(re.findall(r"^      (\S+)$", listed.stdout, re.M))


def test_the_fix_of_an_audit_in_a_users_playbook_is_a_command_and_names_that_playbook(fleet: Fleet) -> None:
    fleet.inventory({"db1": MIXED["db1"]})
    play = fleet.folder / "site.yml"
    play.write_text("- hosts: all\n  gather_facts: false\n  roles: [nearmetal.ec2.audit]\n")
    shown = well(fleet.run(playbook=str(play)))
    tune = "ansible-playbook nearmetal.ec2.tune -i hosts.json --limit db1"
    assert f"To apply the changes: {tune} (with the variables of site.yml)\n" in shown
    look = (
        "ansible-playbook nearmetal.ec2.audit -i hosts.json -e tune_workload=auto -e tune_workload_auto=apply"
        " (with the variables of site.yml)"
    )
    assert f"  {look}\n" in shown
    fleet.inventory({"db1": MIXED["db1"], "db2": MIXED["db1"]})
    shown = well(fleet.run(playbook=str(play)))
    assert "--limit db1,db2 -e tune_only=clocksource.source (with the variables of site.yml)\n" in shown


def test_without_the_callback_a_task_writes_the_reports(fleet: Fleet) -> None:
    fleet.inventory(MIXED)
    run = fleet.run("-e", '{"audit_fail_on": ["would_change"]}', callback="ansible.builtin.default")
    report = checked(fleet)
    assert run.returncode in (2, 4)
    assert states(report) == {"db1": "reported", "db2": "reported", "dead": "failed", "gone": "silent"}
    assert report["fail_on"]["hosts"] == ["db1"]
    assert "stdout_callback = nearmetal.ec2.fleet" in report["blind_spots"][0]
    assert "stdout_callback" in run.stderr
    assert "1 finding with a status of would_change on db1" in run.stdout + run.stderr


def test_without_the_callback_when_every_host_fails(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "dies"}, "h2": {"fate": "dies"}})
    assert fleet.run(callback="ansible.builtin.default").returncode == 2
    assert set(states(checked(fleet)).values()) == {"failed"}


def test_drift_since_an_earlier_report(fleet: Fleet) -> None:
    fleet.inventory(
        {"h1": {"module_result": result_with(GOOD_CLOCK)}, "h2": {"module_result": result_with(GOOD_CLOCK)}}
    )
    well(fleet.run())
    earlier = fleet.folder / "earlier.json"
    (fleet.reports / "report.json").rename(earlier)
    fleet.inventory(
        {
            "h1": {"module_result": result_with({**SLOW_CLOCK, "owner": "chrony"})},
            "h2": {"module_result": result_with(GOOD_CLOCK)},
        }
    )
    run = fleet.run("-e", f"audit_baseline={earlier}")
    changes = checked(fleet)["drift"]["changes"]
    assert [(change["host"], change["what"], change["owner"]) for change in changes] == [
        ("h1", "clocksource.source", "chrony")
    ]
    assert "clocksource.source: tsc (ok) → xen (would change), owner: chrony" in " ".join(well(run).split())


def test_a_run_that_also_changed_hosts_is_no_audit(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with({**GOOD_CLOCK, "status": "changed"})}})
    play = fleet.folder / "site.yml"
    play.write_text("".join(f"- import_playbook: nearmetal.ec2.{verb}\n" for verb in ("audit", "tune", "audit")))
    assert re.search("^TUNE  1 host", well(fleet.run(playbook=str(play))), re.M)
    assert checked(fleet)["run"]["mode"] == "tune"


def test_the_reports_are_there_though_nobody_reads_the_terminal(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    nobody, writing_end = os.pipe()
    os.close(nobody)
    with os.fdopen(writing_end, "w") as closed:
        errors = subprocess.run(
            fleet.command(),
            cwd=fleet.folder,
            env=fleet.environment(),
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        ).stderr
    assert states(checked(fleet)) == {"h1": "reported"}
    assert b"Callback dispatch" not in errors


def test_the_name_of_a_host_cannot_control_the_terminal(fleet: Fleet) -> None:
    bad = "\x1b]0;owned\x07\x9b31m"
    fleet.inventory(
        {
            f"far{bad}": {"fate": "unreachable"},
            f"ill{bad}": {"module_result": result_with(errors={"smt": "busy"}, msg="smt: busy"), "fate": "fails"},
            f"dead{bad}": {"fate": "dies"},
        }
    )
    shown = well(fleet.run())
    for line in ("far31m: unreachable", "ill31m: smt: busy", "dead31m: the host went away in the middle of the module"):
        assert f"✗ {line}" in shown.partition("AUDIT")[0]
    assert "owned" not in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    checked(fleet)


@pytest.mark.parametrize("options", [(), ("-v",)])
def test_a_warning_of_a_host_cannot_control_the_terminal(fleet: Fleet, options: Tuple[str, ...]) -> None:
    bad = "\x1b]0;owned\x07\x1b[2J\x9b31m\r"
    aged = {"msg": f"an old{bad} option", "version": f"9{bad}", "collection_name": "nearmetal.ec2"}
    fleet.inventory(
        {"h1": {"module_result": result_with(GOOD_CLOCK, warnings=[f"a clock{bad} went back"], deprecations=[aged])}}
    )
    run = fleet.run(*options, ANSIBLE_DEPRECATION_WARNINGS="True")
    assert "a clock31m  went back" in well(run) + run.stderr
    assert "an old31m  option" in run.stdout + run.stderr
    assert "owned" not in run.stdout + run.stderr
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(run.stdout + run.stderr)


def test_tasks_of_other_collections_look_as_usual(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    play = fleet.folder / "site.yml"
    play.write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.debug: {msg: hello there}\n"
        "    - name: Quiet\n      ansible.builtin.set_fact: {seen: true}\n"
        "    - name: Loud\n      ansible.builtin.command: /bin/true\n"
        "      vars: {ansible_connection: local, ansible_python_interpreter: '{{ ansible_playbook_python }}'}\n"
    )
    shown = well(fleet.run(playbook=str(play)))
    assert "hello there" in shown
    assert "TASK [Quiet]" not in shown
    assert "changed: [h1]" in shown
    assert "PLAY RECAP" in shown
    assert not fleet.reports.exists()


def test_progress_of_a_fleet_in_a_terminal(fleet: Fleet) -> None:
    fleet.inventory({f"h{number:02d}": {"module_result": result_with(SLOW_CLOCK)} for number in range(30)})
    shown = in_a_terminal(fleet, "--forks", "2")
    drawn = re.findall("\r\x1b\\[K([^\r\n]+)\r", shown)
    assert drawn
    assert all("/30 hosts" in line and len(line) < 80 for line in drawn)
    # The redrawn line leaves no trace on the screen.
    assert "━" not in re.sub("\r\x1b\\[K[^\r\n]*\r(?=\r\x1b\\[K)", "", shown).partition("AUDIT")[2]
    assert "\x1b[1m" in shown


def test_no_color_in_a_terminal(fleet: Fleet) -> None:
    fleet.inventory(MIXED)
    assert not re.search("\x1b\\[[0-9;]*m", in_a_terminal(fleet, NO_COLOR="1"))


def in_a_terminal(fleet: Fleet, *arguments: str, **more: str) -> str:
    """The output on a terminal of 80 columns."""
    test_end, terminal_end = pty.openpty()
    process = subprocess.Popen(
        fleet.command(*arguments),
        cwd=fleet.folder,
        env=fleet.environment(TERM="xterm-256color", **more),
        stdin=subprocess.DEVNULL,
        stdout=terminal_end,
        stderr=subprocess.STDOUT,
    )
    os.close(terminal_end)
    parts = []
    try:
        while part := os.read(test_end, 65536):
            parts.append(part)
    except OSError:
        pass  # Linux ends a pty with EIO
    process.wait()
    os.close(test_end)
    return b"".join(parts).decode().replace("\r\n", "\n")
