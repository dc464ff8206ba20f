# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a rollout on the controller: each is one task, and knows only the record. PRIVATE to the collection."""

from __future__ import annotations

import os
import secrets
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics.metrics import LARGEST, SMALLEST
from ...module_utils._words import plain, sentence
from .._files import short_path, write, writing
from . import cloudwatch, draw, guards, metrics, page, permission, prometheus, record, sentences
from .decision import BACK, GO_ON, HOLD, Judgment, Settings, by_proof, figures, judge, judgment_with, outcome_of
from .effect import Won
from .options import IN_RECORD, validated

_TRIED = 3  # hosts of which metrics are asked in check mode
_PATIENCE = 3  # intervals for which a source of metrics may be silent
Host = Mapping[str, Any]  # what the play knows of a host: before, after, failed, reached, of_others, proof, stratum, …


class Steps:
    """The steps, for the action plugin. `hosts` has the variables of each host of the play or batch."""

    def __init__(self, show: Callable[[str], None], directory: str, parent: int) -> None:
        self._show, self._directory, self._parent = show, directory, parent
        self._asked = 0.0  # the end of the last look, whether or not it gave a value

    def begin(
        self, given: Mapping[str, Any], hosts: Mapping[str, Host], write: bool = True, target: str = ""
    ) -> Dict[str, Any]:
        """Draw the batches, or go on with a record; the hosts that are left, and the sizes of their batches.

        Without `write` only lines for the operator, who chose the play's hosts by `target`.
        """
        options = validated(given)
        if options["resume"]:
            kept = self._resumed(options["resume"], hosts)
        else:
            kept = self._new(self._start(options, hosts), list(hosts), write)
        given_again = {name: options[name] for name in permission.PERMISSION if options[name]}
        run = {"at": time.time(), "pid": self._parent, "controller": os.uname().nodename, "options": given_again}
        (kept.add if write else kept.note)("run", **run)
        first, ends = self._first_batch(kept), kept.start["ends"]
        shown = {"record": "", "order": [], "sizes": [], "tried": [], "lines": sentences.plan(kept.start, first)}
        if not write:
            lines = sentences.preview(kept.start, first, self._try(kept.start), target, not options["resume"])
            return {**shown, "tried": kept.hosts[:_TRIED], "lines": lines}
        if first == len(ends):  # the last batch was held, or the run was killed after it
            kept.add("end", at=time.time(), outcome="done")
            return {**shown, "lines": sentences.end(kept)}
        begins = [0, *ends]
        order = kept.hosts[begins[first] : ends[-1]]
        sizes = [ends[number] - begins[number] for number in range(first, len(ends))]
        return {**shown, "record": kept.path, "order": order, "sizes": sizes}

    def _new(self, start: Dict[str, Any], hosts: List[str], write: bool) -> record.Record:
        # By its name hosts know whose lease they have, also if two begin at once on two controllers.
        name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(start['at']))}-{secrets.token_hex(4)}.jsonl"
        path = os.path.join(record.folder_of(self._directory), name)
        if not write:
            return record.Record(path, start)
        record.require_alone(self._directory, hosts)
        return record.begin(path, start)

    def _start(self, options: Mapping[str, Any], hosts: Mapping[str, Host]) -> Dict[str, Any]:
        seed = options["seed"] if "seed" in options else secrets.randbelow(2**31)
        strata = {name: str(host.get("stratum", "")) for name, host in hosts.items()}
        order, ends = draw.draw(seed, strata), draw.batch_ends(options["batches"], len(hosts))
        looks = max(1, round(options["watch"] / options["interval"]))
        settings = Settings(
            metrics=tuple((metric["name"], metric["better"], metric["margin"]) for metric in options["metrics"]),
            judged=max(1, sum(end < len(hosts) for end in ends)),
            looks=looks,
            most_looks=max(looks, round(options["watch_at_most"] / options["interval"])),
            seed=seed,
            unclear=options["on_unclear"],
        )
        return {
            "at": time.time(),
            "settings": settings._asdict(),
            "options": {name: options[name] for name in IN_RECORD},
            "ends": ends,
            "hosts": order,
            "strata": draw.strata_of(strata, order),
            "addresses": [str(hosts[name].get("address") or name) for name in order],
            "instance_ids": [str(hosts[name].get("instance_id") or "") for name in order],
        }

    def _resumed(self, path: str, hosts: Mapping[str, Host]) -> record.Record:
        kept = record.read(path)
        if kept.outcome in ("done", "taken_back"):
            raise NearmetalError(f"{plain(path)} is a rollout that has ended ({kept.outcome}): start a new one")
        record.require_idle(kept)
        record.require_alone(self._directory, kept.hosts, path)  # while it was held, another one may have begun
        absent = [host for host in kept.hosts if host not in hosts]
        if absent:
            raise NearmetalError(
                f"{plain(absent[0])} of the rollout isn't among the play's hosts: resume with the target it began with"
            )
        return kept

    def _first_batch(self, kept: record.Record) -> int:
        """The first batch that is left; one that was held is left behind: whoever resumes has looked at it."""
        if not kept.batches:
            return 0
        last = kept.batches[-1]
        return last.number if last.closed and last.decision in (GO_ON, HOLD) else last.number - 1

    def open(self, path: str, hooks: bool = False) -> Dict[str, Any]:
        """Begin the next batch, and look at its hosts and at those that wait as they are before it.

        With `hooks` its hosts are out of service while they are tuned, so they are tuned in groups.
        """
        kept = record.read(path)
        number = self._first_batch(kept) + 1
        ends, hosts = kept.start["ends"], len(kept.hosts)
        options = kept.start["options"]
        opened = {
            "health": options["health"],
            "prove": options["prove_first"] and number == 1,
            "held": True,
            "hosts": [],
        }
        opened["lease"] = options["lease"] + options["watch_at_most"] if options["lease"] else 0
        if self._hold(kept):
            return opened
        if not kept.batches or kept.batches[-1].number != number:
            begin, end = ([0, *ends])[number - 1], ends[number - 1]
            last = end + draw.watched(end - begin, hosts - end)
            kept.add("batch", number=number, begin=begin, end=end, last=last, at=time.time())
        batch = kept.batches[-1]
        looks = max(1, round(options["before"] / options["interval"]))
        while options["metrics"] and batch.last > batch.end and not batch.tuned and len(batch.before) < looks:
            seen = self._look(kept, batch, sentences.progress(kept, batch))
            self._pause(0 if seen else options["interval"])
            patience = options["before"] + _PATIENCE * options["interval"] + _delay(options)
            if not seen and time.time() > batch.began + patience:
                raise NearmetalError("no metric has a value of any host, so nothing was tuned: is their source up?")
        names = self.batch(path)
        strata = dict(zip(names, kept.start["strata"][batch.begin : batch.end]))
        groups = permission.groups(options["most_unavailable"], strata) if hooks else dict.fromkeys(names, 0)
        return {**opened, "again": bool(batch.tuning), "held": False, "hosts": names, "groups": groups}

    def permit(self, path: str, hosts: Mapping[str, Host]) -> Dict[str, Any]:
        """Whether the batch may be tuned, now that its hosts were looked at; the last thing before it."""
        kept = record.read(path)
        batch, limit = kept.batches[-1], kept.start["options"]["most_unavailable"]
        away = [name for name, host in hosts.items() if host.get("failed") or not _is_well(host.get("before"))]
        strata = dict(zip(hosts, kept.start["strata"][batch.begin : batch.end]))
        reasons = permission.unavailable(limit, strata, away)
        if len(away) == len(hosts) and not (limit or batch.tuning):
            reasons = ["no host of the batch is both healthy and within reach"]
        if self._hold(kept, reasons):
            return {"held": True}
        new = [name for name in hosts if name not in away and (name in kept.without or name not in batch.vitals)]
        if new or not batch.tuning:
            vitals = {name: {**hosts[name]["before"], "kernel": []} for name in new}  # messages are long in a record
            kept.add("tuning", at=time.time(), without=[] if batch.tuning else away, vitals=vitals)
        return {"held": False}

    def _hold(self, kept: record.Record, reasons: Sequence[str] = ()) -> bool:
        """Whether no host may be tuned now, which is written down."""
        reasons = [*permission.refused(kept.start["options"], time.time()), *reasons]
        if reasons:
            kept.add("hold", at=time.time(), reasons=reasons)
        return bool(reasons)

    def batch(self, path: str) -> List[str]:
        """The hosts of the batch, also those that Ansible has given up; none while the rollout is held."""
        kept = record.read(path)
        return [] if kept.held else kept.hosts[kept.batches[-1].begin : kept.batches[-1].end]

    def watch(self, path: str, hosts: Mapping[str, Host]) -> Dict[str, Any]:
        """Look at the batch until the metrics decide; at once where a host failed, or a proof speaks against it."""
        kept = record.read(path)
        if kept.held:
            return Judgment(HOLD, tuple(kept.held)).as_dict()
        batch = kept.batches[-1]
        failed = {name: str(host["failed"]) for name, host in hosts.items() if host.get("failed")}
        first = batch.run == len(kept.runs)  # an earlier run may have tuned a host that this one didn't reach
        away = [name for name, host in hosts.items() if not (host.get("failed") or host.get("reached"))]
        out = [name for name in away if first or hosts[name].get("of_others")]
        if out or not batch.tuned:
            kept.add("tuned", at=time.time(), failed=failed, without=out)
        if failed:
            return Judgment(BACK, ()).as_dict()
        proofs = {name: host["proof"] for name, host in hosts.items() if host.get("proof")}
        if not all(proof["kept"] for proof in proofs.values()):
            return by_proof(proofs).as_dict()
        judged = self._watched(kept, batch)
        return {**judged.as_dict(), "figures": figures(kept.settings, kept.watch(batch))}

    def _watched(self, kept: record.Record, batch: record.Batch) -> Judgment:
        options, settings = kept.start["options"], kept.settings
        looks = 0 if not settings.metrics or batch.last == batch.end else settings.most_looks
        deadline = time.time() + options["watch_at_most"] + _PATIENCE * options["interval"] + _delay(options)
        judged = Judgment("", ())
        won: Dict[str, Won] = {}
        for count in range(1, len(batch.after) + 1):  # of a run that was killed
            judged = judge(settings, kept.watch(batch, count), won=won)
            if judged.decision:
                return judged
        while len(batch.after) < looks and time.time() <= deadline:
            if self._look(kept, batch, sentences.progress(kept, batch)):
                judged = judge(settings, kept.watch(batch), won=won)
            if judged.decision:
                return judged
        if len(batch.after) < min(looks, settings.looks):
            words = (
                f"only {len(batch.after)} of {settings.looks} looks gave a value in this time: is the source of the"
                " metrics up, and does it answer within an interval?"
            )
            return Judgment(HOLD, (words,))
        self._pause(batch.tuned + options["watch"] - time.time())
        return judge(settings, kept.watch(batch), over=True, won=won)

    def decide(self, path: str, judged: Mapping[str, Any], hosts: Mapping[str, Host]) -> Dict[str, Any]:
        """The decision on the batch, by the metrics and by what became of each host; who is to be taken back."""
        kept = record.read(path)
        if kept.held:
            for line in sentences.held(kept, self._first_batch(kept) + 1):
                self._show(line)
            return {**judged, "back": []}
        batch, options = kept.batches[-1], kept.start["options"]
        fired = {name: self._fired(options["guards"], host, batch.vitals.get(name)) for name, host in hosts.items()}
        fired = {name: words for name, words in fired.items() if words}
        failed = {name: str(host["failed"]) for name, host in hosts.items() if host.get("failed")}
        of_metrics = Judgment(judged["decision"] or GO_ON, tuple(judged["reasons"]))
        last = judgment_with(of_metrics, fired, {name: sentence(why) for name, why in failed.items()})
        proven = [name for name, host in hosts.items() if host.get("proof") and not host["proof"]["kept"]]
        decided = {**last.as_dict(), "figures": judged.get("figures", []), "without": proven}
        kept.add("decision", at=time.time(), number=batch.number, **decided)
        for line in sentences.decision(kept, batch):
            self._show(line)
        back: List[str] = []
        if last.decision == BACK:
            own = set(kept.hosts[batch.begin :] if options["on_back"] == "batch" else kept.hosts)
            back = [host for host in kept.tuned() if host in own]
        return {**decided, "back": back}

    def _fired(self, limits: Mapping[str, float], host: Host, earlier: Optional[Mapping[str, Any]]) -> List[str]:
        seen, after = host.get("before"), host.get("after")
        # A run that was killed may have tuned it: what that one saw was before its tuning.
        before = earlier if earlier is not None and isinstance(seen, Mapping) else seen
        if host.get("failed") or not isinstance(before, Mapping) or not _is_well(before):
            return []
        if not isinstance(after, Mapping):
            return ["the host can't be reached after its tuning"]
        unhealthy = str(after.get("unhealthy") or "")
        return [*([sentence(unhealthy)] if unhealthy else []), *guards.fired(limits, before, after)]

    def end(self, path: str, restored: Mapping[str, str]) -> Dict[str, Any]:
        """Close the record; the outcome, and the lines of the end. `restored` says what is left on each host."""
        kept = record.read(path)
        if restored:
            kept.add("restored", at=time.time(), hosts=dict(restored))
        batch = kept.batches[-1] if kept.batches else None
        last = batch is not None and batch.number == len(kept.start["ends"])
        outcome = outcome_of(batch.decision, last) if batch is not None and batch.decision else None
        outcome = "held" if kept.held else outcome
        if outcome:
            kept.add("end", at=time.time(), outcome=outcome)
        page_path = f"{path.removesuffix('.jsonl')}.html"
        with writing(f"the report {page_path}"):
            write(page_path, page.render(kept))
        lines = [*sentences.end(kept), f"  page: {short_path(page_path)}"]
        ended = {"outcome": outcome or "open", "record": path, "lines": lines, "tuned": kept.tuned()}
        return {**ended, "msg": sentences.why(kept)}

    def _try(self, start: Mapping[str, Any]) -> Dict[str, metrics.Values]:
        """What the metrics say now of the first hosts. Raises NearmetalError if none says anything."""
        options, places = start["options"], self._places(start, slice(_TRIED))
        values = self._ask(options, places, time.time() - _delay(options))
        if values and not any(value is not None for of_hosts in values.values() for value in of_hosts.values()):
            raise NearmetalError(metrics.say_silent(options["metrics"][0], places))
        return values

    def _places(self, start: Mapping[str, Any], hosts: slice) -> List[metrics.Place]:
        of_hosts = (start[name][hosts] for name in ("hosts", "addresses", "instance_ids"))
        return [metrics.Place(*place) for place in zip(*of_hosts)]

    def _look(self, kept: record.Record, batch: record.Batch, words: str) -> bool:
        """Wait for the next look, and write down what it saw; whether it saw anything."""
        options, start = kept.start["options"], kept.start
        due = self._asked = self._due(kept, batch)
        self._show(words)
        self._pause(due + _delay(options) - time.time())
        hosts = slice(batch.begin, batch.last)
        found = self._ask(options, self._places(start, hosts), due)
        values = {name: list(of_hosts.values()) for name, of_hosts in found.items()}
        if not any(value is not None for row in values.values() for value in row):
            return False
        kept.add("look", at=time.time(), due=due, values=values)
        return True

    def _ask(
        self, options: Mapping[str, Any], places: Sequence[metrics.Place], due: float
    ) -> Dict[str, metrics.Values]:
        interval, found = options["interval"], {}
        asked = {metric["name"]: metric["cloudwatch"] for metric in options["metrics"] if "cloudwatch" in metric}
        for metric in options["metrics"]:
            try:
                if "command" in metric:
                    found[metric["name"]] = metrics.by_command(metric, places, max(interval, 10.0))
                elif "prometheus" in metric:
                    query, range_ = metric["prometheus"], (due - interval, due, interval / 4)
                    found[metric["name"]] = prometheus.ask(options["prometheus"], query, places, *range_)
                elif asked:  # all at once
                    server = {**options["cloudwatch"], "seconds": interval}
                    wanted, asked = asked, {}
                    found.update(cloudwatch.ask(server, wanted, places, due - interval))
            except NearmetalError as error:  # it may be started anew: a look without a value doesn't count
                self._show(f"{sentences.TITLE}  {error}")
        names = [metric["name"] for metric in options["metrics"]]
        return {name: {place.host: _rounded(found.get(name, {}).get(place.host)) for place in places} for name in names}

    def _due(self, kept: record.Record, batch: record.Batch) -> float:
        """When the next look is, on one grid of time; in the past where servers know what was."""
        options = kept.start["options"]
        interval = options["interval"]
        since = batch.tuned or batch.began
        if not any("command" in metric for metric in options["metrics"]):
            return float(max(since - (0 if batch.tuned else options["before"]), batch.asked, self._asked) + interval)
        passed = max(0.0, time.time() - since)
        return float(since + interval * (1 + passed // interval))

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if os.getppid() != self._parent:
                raise NearmetalError("Ansible ended; the record goes on with rollout_resume")
            time.sleep(max(0.0, min(1.0, until - time.monotonic())))


def _delay(options: Mapping[str, Any]) -> float:
    """Seconds after which the values of a look are known."""
    asked = any("cloudwatch" in metric for metric in options["metrics"])
    return float(options["cloudwatch"]["delay"] + cloudwatch.PERIOD) if asked else 0.0


def _is_well(vitals: Any) -> bool:
    return isinstance(vitals, Mapping) and not vitals.get("unhealthy")


def _rounded(value: Optional[float]) -> Optional[float]:
    """Six digits, which keep a record of many hosts small; what is no number of a metric is none.

    The ratio of any two is a number too: what is as good as zero counts as zero.
    """
    if value is None or not 0 <= value < LARGEST:
        return None
    return float(f"{value:.6g}") if value >= SMALLEST else 0.0
