# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of rollout: what a step asks of Ansible. plugin_utils/_rollout/run.py has the steps."""

from __future__ import annotations

import os
from collections import ChainMap
from typing import Any, Mapping

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ..module_utils._error import NearmetalError
from ..module_utils._mistakes import Mistakes
from ..module_utils._words import plain, sentence
from ..plugin_utils._ansible import by_agent, later, variables
from ..plugin_utils._ansible.plays import report_directory
from ..plugin_utils._clean import mapping
from ..plugin_utils._files import file_name
from ..plugin_utils._prove import inputs
from ..plugin_utils._rollout.options import validated
from ..plugin_utils._rollout.run import Steps

_MODULE = "nearmetal.ec2.rollout"
_AGENT = by_agent.encoded(measuring=True)
_ON_HOST = ("look", "claim", "release")
_LATER = ("tune_", "prove_")  # begin the variables of the roles that come later
_NO_METRICS = (
    "rollout_metrics is empty: guards alone decide, and a batch that only makes the hosts slower goes on to all"
)
_NO_SERIAL = (
    "tune_serial has no effect in a rollout: rollout_batches says how many hosts are tuned when each batch is over"
)
_ADDRESSES = ("ansible_host", "ansible_ssh_host")


class ActionModule(ActionBase):
    """One step: those of _ON_HOST on a host, all others on the controller, once for the play or batch."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The step's result."""
        known = task_vars or {}
        result = variables.warn(super().run(tmp, task_vars), _MODULE, known)
        given = dict(self._task.args)
        step = given.get("step", "begin")
        if step in _ON_HOST:
            run = file_name(os.path.basename(str(given.get("record") or "")))
            return {**result, **self._on_host({**given, "step": step, "run": run}, known)}
        try:
            if step == "begin":
                result["warnings"] = [*(result.get("warnings") or ()), *self._warnings(given, known)]
            steps = Steps(self._display.display, report_directory(), os.getppid())
            return {**result, "changed": False, **self._step(steps, str(step), given, known)}
        except NearmetalError as error:
            return {**result, "failed": True, "msg": variables.as_typed(sentence(str(error)), self._task)}

    def _warnings(self, given: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
        """What to warn of. Raises NearmetalError, which names all mistakes of the options that the rollout will use."""
        mistakes = Mistakes()
        mistakes.of(variables.require_limits, known, _MODULE)
        checked = mistakes.of(validated, given)
        names_of_play = [name for name in self._task.get_play().get_vars() if name in known and name.startswith(_LATER)]
        of_play = {name: self._templar.template(known[name]) for name in names_of_play}
        checks = {"tune": later.of_tune, **({"prove": inputs.require_right} if checked.get("prove_first") else {})}
        names = known.get("ansible_play_hosts_all", ())
        mistakes.found += later.mistakes(checks, {name: ChainMap(of_play, known["hostvars"][name]) for name in names})
        mistakes.require_none()
        blind = not checked["metrics"] and not checked["resume"]
        return [*([_NO_METRICS] if blind else ()), *([_NO_SERIAL] if "tune_serial" in known else ())]

    def _step(self, steps: Steps, step: str, given: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        path = str(given.get("record") or "")
        if step == "begin":
            begun = steps.begin(given, self._drawn(known), not self._task.check_mode, str(known.get("target") or ""))
            for line in begun["lines"]:
                self._display.display(line)
            return {"msg": begun["lines"][0], **begun}
        if step == "open":
            return {"msg": "begun", **steps.open(path, bool(given.get("hooks")))}
        hosts = self._batch(steps.batch(path), known)
        if step == "permit":
            return {"msg": "permitted", **steps.permit(path, hosts)}
        if step == "watch":
            return {"msg": "watched", "judged": steps.watch(path, hosts)}
        if step == "decide":
            decided = steps.decide(path, given["judged"], hosts)
            return {"msg": f"{decided['decision']}: {'; '.join(decided['reasons'])}"[:1000], **decided}
        ended = steps.end(path, self._restored(given.get("hosts") or [], known))
        for line in ended["lines"]:
            self._display.display(line)
        data = {"nearmetal": {"rollout": {name: ended[name] for name in ("outcome", "record")}}}
        ended["ansible_stats"] = {"data": data, "per_host": False, "aggregate": True}
        return ended

    def _on_host(self, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        """The step's result on the host; one that can't be reached is a result too."""
        wanted = {name: given[name] for name in ("step", "health", "run", "lease") if given.get(name)}
        host, words = str(self._task.delegate_to or known.get("inventory_hostname", "")), ""
        claimed, shown = known.get("rollout_claimed") or {}, bool(self._task.delegate_to)  # only to be said
        try:
            result = by_agent.measure(self, "rollout", wanted, known, _AGENT)
            if result.get("claimed") is False:
                words = f"is left out: {plain(str(result['msg']))}"
            elif result.get("claimed") and "lease" in wanted and not result.get("lease"):
                words = "isn't brought back by itself if nobody decides: that takes systemd and Python 3.7 or later"
            if shown and "vitals" in result:
                ill = result["vitals"].get("unhealthy")
                words = f"isn't healthy now: {plain(str(ill))}" if ill else "is healthy" if "health" in wanted else ""
            if result.get("released") is False and claimed.get("claimed"):
                words = "was restored before it could be told that it stays tuned: its lease had ended"
        except AnsibleConnectionFailure as error:
            result = {"changed": False, "unreachable_host": True, "msg": sentence(str(error))}
            if shown:
                words = f"can't be reached now: {sentence(str(error))}"
            elif given["step"] == "release":
                module = f"-m {_MODULE} -a 'step=release record={given['record']}'"
                # An answer to the claim that was lost may have been a yes, with the lease that was asked for.
                lease = claimed.get("lease", (known.get("rollout_opened") or {}).get("lease"))
                until = "restores itself when its lease ends, or" if lease else "belongs to this rollout until you run"
                words = f"can't be reached, and {until}: ansible {host} -b {module}"
        if words:
            self._display.display(f"ROLLOUT  {host} {words}")
        return result

    def _drawn(self, known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Each host of the play with its stratum and address."""
        names = list(known.get("ansible_play_hosts_all", ()))
        members = set(names)
        groups = {
            group: [name for name in hosts if name in members]
            for group, hosts in known.get("groups", {}).items()
            if group not in ("all", "ungrouped")
        }
        of_host: dict[str, list[str]] = {name: [] for name in names}
        for group, hosts in sorted(groups.items()):
            # A group of a single host would leave it without others to be compared with.
            for name in hosts if 1 < len(hosts) < len(names) else ():
                of_host[name].append(group)
        return {name: self._place(name, of_host[name], known["hostvars"][name]) for name in names}

    def _place(self, name: str, groups: list[str], own: Mapping[str, Any]) -> dict[str, Any]:
        zone = mapping(own.get("placement")).get("availability_zone", "")
        kind = own.get("tune_instance_type") or own.get("instance_type") or ""
        zone = own.get("rollout_zone") or zone or own.get("availability_zone") or ""
        stratum = " ".join(filter(None, (",".join(groups), str(kind), str(zone))))
        address = next((str(own[variable]) for variable in _ADDRESSES if own.get(variable)), name)
        return {
            "stratum": str(own.get("rollout_stratum") or stratum),
            "address": address,
            "instance_id": str(own.get("instance_id") or ""),
        }

    def _batch(self, names: list[str], known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What became of each host of the batch, as the play registered it."""
        found = {}
        for name in names:
            own = known["hostvars"][name]
            before, after = (own.get(f"rollout_{moment}") or {} for moment in ("before_look", "after_look"))
            found[name] = {
                "before": before.get("vitals"),
                "after": after.get("vitals"),
                "failed": own.get("rollout_failed") or "",
                "reached": "tune_result" in own or "prove_result" in own,
                "of_others": (own.get("rollout_claimed") or {}).get("claimed") is False,
                "proof": _proof(own.get("prove_result")),
            }
        return found

    def _restored(self, names: list[str], known: Mapping[str, Any]) -> dict[str, str]:
        """Each host that was to be taken back: why it wasn't, or what was left there; empty if all is back."""
        return {name: self._left(known["hostvars"][name].get("rollout_restored")) for name in names}

    def _left(self, result: Any) -> str:
        if not isinstance(result, Mapping) or result.get("unreachable"):
            return "the host can't be reached"
        return sentence(str(result.get("msg", "failed"))) if result.get("failed") else ""


def _proof(result: Any) -> dict[str, Any] | None:
    """What prove did with the host; None where it wasn't asked."""
    if not isinstance(result, Mapping) or "kept" not in result:
        return None
    return {"kept": result["kept"], "verdict": mapping(result.get("verdict")).get("verdict", "")}
