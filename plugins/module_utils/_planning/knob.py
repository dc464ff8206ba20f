# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A knob: one declaration of all that is known of it, and what a plan says of it. Pure. PRIVATE to the collection.

The declarations stand at the top of each concern. From them follow its options, the names that a waiver may
have, what a workload may not lower, and who else may own a knob.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._plan import Action, Finding, Plan, Value, Wanted
from .._words import plain

Spec = Mapping[str, Any]
EARLIER = " (so found by the last run of tune; the next one looks again)"
Options = Mapping[str, Any]

AT_ONCE = "at_once"
_KEEPS = "a running program keeps the old value"
# What a setting takes effect for → why a load right after a change may not show it. docs/prove.md has where Linux reads
# each value.
UNFELT: Mapping[str, str] = {
    "new_connections": f"{_KEEPS} in the connections that it has",
    "listen": f"{_KEEPS}: a listening socket keeps its backlog, and hands its buffers on to what it accepts",
    "new_memory": f"{_KEEPS}: memory that it has keeps its pages",
    "open": f"{_KEEPS} for the files that it has open",
    "interface_up": "an interface that is up keeps the old value",
    "slowly": "the kernel acts on it over minutes, and what it has done stays",
    "limit": "it is a limit, which only a load that reaches it feels",
    "boot": f"{_KEEPS} until it starts again",
}
EFFECTS = (AT_ONCE, *UNFELT)
# What a load doesn't feel although the host was booted, or its program restarted, after the change: all else is felt.
BOOT, RESTART = "boot", "restart"
_STILL_UNFELT = {BOOT: ("slowly", "limit", ""), RESTART: ("slowly", "limit", "", "interface_up", "boot")}


class Knob(NamedTuple):
    """What an option changes by one lever. An option that uses two levers has two declarations with one name."""

    concern: str
    name: str  # in actions and findings; usually that of its option
    lever: str = ""  # how the engine reads and writes it: clock.current; empty if it is only checked
    reference: str = ""  # the source of its reasons
    spec: Optional[Spec] = None  # of its option, in the form of an Ansible argument spec; None: no option of its own
    option: str = ""  # the option with its value, if not its name: tx_queue.length
    within: str = ""  # a list option whose entries set it for single devices: interfaces
    place: str = ""  # what the lever changes, in the vocabulary of the lever: net.core.somaxconn
    subject: str = ""  # the device that its reasons begin with: ens5
    reason: str = ""  # what it does, in words
    bound: str = ""  # a workload's value is a bound: LEAST, MOST … of _planning/bounds.py
    manner: Tuple[str, ...] = ()  # options that only say how it is set: irq_cpus
    disruptive: bool = False
    scope: str = "runtime"  # runtime | boot
    reversible: str = "now"  # now | by_reboot | no
    takes_effect: str = ""  # one of EFFECTS; empty if it is only checked
    # The lines of tmpfiles.d that set it at each boot: path → nearmetal's word → the kernel's, {} for the same words.
    # A kernel parameter has its line of sysctl.d by its place.
    at_boot: Mapping[str, Mapping[str, str]] = {}
    by_unit: Tuple[str, ...] = ()  # values that the unit sets at boot, as they fit only this host; "" for every value
    # tuned's settings of the same thing (tuned-profiles(7)), and setting → tuned's word → nearmetal's value.
    tuned: Tuple[str, ...] = ()
    tuned_words: Mapping[str, Mapping[str, str]] = {}
    comparable: bool = False  # its findings show values as the lever writes them, so tuned's can be compared
    kubelet: bool = False  # kubelet counts, checks or sets it too

    @property
    def base(self) -> str:
        """The option that has its value, or a suboption with it."""
        return (self.option or self.name).partition(".")[0]

    @property
    def part(self) -> str:
        """The suboption that has its value; empty for the option itself."""
        return self.option.partition(".")[2]

    @property
    def names(self) -> FrozenSet[str]:
        """By what a selection may name it: its own name, or its option's."""
        return frozenset((self.name, self.base))

    def at(self, place: str, subject: str = "") -> Knob:
        """The same knob of one device or place."""
        return self._replace(place=place, subject=subject)

    def unfelt(self, after: str = "") -> str:
        """Why a load right after a change, or `after` a BOOT or RESTART, may not show it; empty if it shows it."""
        if self.takes_effect == AT_ONCE or (after and self.takes_effect not in _STILL_UNFELT[after]):
            return ""
        return UNFELT.get(self.takes_effect, "nobody has said when it takes effect")

    def value(self, options: Any) -> Any:
        """The value in these options, or in this entry of a list option; None when it was left out."""
        value = options.get(self.base)
        return value.get(self.part) if self.part and value is not None else value

    def lines(self, goal: Value) -> Dict[str, str]:
        """What files have so that each boot sets this value."""
        if self.lever == "sysctl":
            return {self.place: str(goal)}
        return {path: words.get(str(goal), str(goal)) for path, words in self.at_boot.items()}

    def lasting(self, plan: Plan, wanted: Wanted, goal: Value) -> Plan:
        """The plan with what sets the goal at each boot: nothing for `kernel`, the unit for what nearmetal decides."""
        requested = self.value(wanted)
        if requested in ("auto", "kernel"):
            return plan
        if "" in self.by_unit or requested in self.by_unit:
            return plan._replace(replan=True)
        return plan._replace(at_boot=self.lines(goal))

    def wanted_by(self, wanted: Wanted) -> str:
        """Who wants it: `user`, `workload` or `auto`."""
        return wanted.wanted_by(self.within if self.within and wanted.get(self.base) is None else self.base)

    def finding(self, status: str, reason: str, now: Value = None, wanted: Value = None, gain: str = "") -> Finding:
        """One statement about the knob."""
        return Finding(
            concern=self.concern,
            knob=self.name,
            status=status,
            reason=f"{self.subject}: {reason}" if self.subject else reason,
            now=now,
            wanted=wanted,
            reference=self.reference,
            where=self.place,
            gain=gain,
        )

    def says(self, status: str, reason: str, now: Value = None, wanted: Value = None) -> Plan:
        """The plan that changes nothing and makes one statement."""
        return Plan(findings=(self.finding(status, reason, now, wanted),))

    def advises(self, sentences: Iterable[str], now: Value = None) -> Plan:
        """The plan that changes nothing and gives advice."""
        return Plan(findings=tuple(self.finding("advice", sentence, now) for sentence in sentences))

    def action(self, wanted_by: str, now: Value, goal: Value, reason: str) -> Action:
        """The action that brings the knob from `now` to `goal`."""
        return Action(
            concern=self.concern,
            knob=self.name,
            what=self.lever,
            where=self.place,
            before=now,
            after=goal,
            reason=f"{self.subject}: {reason}" if self.subject else reason,
            reference=self.reference,
            scope=self.scope,
            disruptive=self.disruptive,
            reversible=self.reversible,
            wanted_by=wanted_by,
        )

    def change(self, wanted: Wanted, now: Value, goal: Value, reason: str, gain: str = "") -> Plan:
        """The plan that brings the knob from `now` to `goal`, or only a finding `ok` when they are equal.

        A gain that was measured replaces `gain`, which others published.
        """
        if now == goal:
            return self.lasting(self.says("ok", reason, now, goal), wanted, goal)
        action = self.action(self.wanted_by(wanted), now, goal, reason)
        # Imported late, because most runs change nothing.
        from .._measured import gain_of

        measured = gain_of(f"{self.concern}.{self.name}", now, goal)
        plan = Plan((action,), (self.finding("would_change", reason, now, goal, measured or gain),))
        return self.lasting(plan, wanted, goal)

    def change_entries(self, wanted: Wanted, now: Mapping[str, Any], goal: Mapping[str, Any], reason: str) -> Plan:
        """The plan for a table of which only the entries in `goal` are changed."""
        return self.change(wanted, {label: now[label] for label in goal if label in now}, goal, reason)

    def gated(self, wanted: Wanted, reason: str, change: Plan) -> Plan:
        """The change, unless there is a reason to leave the knob alone, now or when an earlier run decided.

        The unit plans while a boot still brings routes, programs and other owners: what a run refused because of them
        stays refused until the next run decides.
        """
        place = (self.name, self.place)
        reason = reason or self.earlier(wanted)
        if reason and change.actions:
            action = change.actions[0]
            change = self.says("refused", reason, action.before, action.after)
        # Of what may cut the host off, the unit must know that it was decided, too.
        return change._replace(remember={place: reason} if reason or self.disruptive else {})

    def earlier(self, wanted: Wanted) -> str:
        """Why the run that stored what is wanted left the knob alone; empty where it didn't."""
        reason = wanted.remembered.get((self.name, self.place), "")
        return f"{reason}{EARLIER}" if reason else ""

    def change_each(self, wanted: Wanted, now: Mapping[str, str], goal: Mapping[str, str], reason: str) -> Plan:
        """The plan for a table, whose finding shows its different words, not every CPU."""
        words, goal_words = (_words(table.values()) for table in (now, goal))
        plan = self.says("ok", reason, words, goal_words)
        if dict(now) != dict(goal):
            before = {name: word for name, word in now.items() if word}
            action = self.action(self.wanted_by(wanted), before, dict(goal), reason)
            plan = Plan((action,), (self.finding("would_change", reason, words, goal_words),))
        return self.lasting(plan, wanted, goal_words)

    def impossible(self, wanted: Wanted, sentence: str, now: Value = None, goal: Value = None) -> Plan:
        """The plan that says `not_applicable` for a value that this host can't take and that a workload wants.

        Raises NearmetalError when the user wants it. `sentence` names the option and what would be possible.
        """
        if self.wanted_by(wanted) != "workload":
            raise NearmetalError(sentence)
        return self._replace(subject="").says("not_applicable", sentence, now, goal)

    def not_offered(self, wanted: Wanted, who: str, requested: str, offered: Iterable[str], now: Value) -> Plan:
        """The same for a word that `who`, such as the kernel, doesn't take."""
        offers = f"doesn't offer {plain(requested)}; it offers {' '.join(offered) or 'nothing'}"
        return self.impossible(wanted, f"{self.concern}.{self.name}: this {who} {offers}", now, requested)


def _words(values: Iterable[str]) -> str:
    """The different words of a table, numbers in their order."""
    return " ".join(sorted(set(values) - {""}, key=lambda word: (word.isdigit() and len(word), word)))


def boot_argument(concern: str, name: str, argument: str, reference: str, **more: Any) -> Knob:
    """A knob that is a kernel argument of this name: it changes with the next boot."""
    more = {"scope": "boot", "reversible": "by_reboot", "takes_effect": "boot", **more}
    return Knob(concern, name, "boot.arguments", reference, place=argument, **more)


def options_of(knobs: Iterable[Knob]) -> Dict[str, Dict[str, Any]]:
    """The options of the knobs in the form of an Ansible argument spec; a dot in an option's name makes a suboption."""
    options: Dict[str, Dict[str, Any]] = {}
    for knob in knobs:
        if knob.spec is None:
            continue
        if knob.part:
            options.setdefault(knob.base, {"type": "dict", "options": {}})["options"][knob.part] = knob.spec
        else:
            options[knob.base] = dict(knob.spec)
    return options


def without(knobs: Sequence[Knob], options: Options, names: AbstractSet[str]) -> Dict[str, Any]:
    """The options without those of these names, and without what sets the knobs of these names."""
    dropped = [knob for knob in knobs if knob.spec is not None and not names.isdisjoint(knob.names)]
    gone = frozenset(names).union(*(knob.manner for knob in dropped))
    kept = _pruned({option: value for option, value in options.items() if option not in gone}, dropped)
    for within in {knob.within for knob in dropped}.intersection(kept):
        pruned = [(entry, _pruned(entry, dropped)) for entry in kept.pop(within)]
        # An entry that sets nothing any more goes; one that never did is the user's mistake, which the plan names.
        entries = [left for entry, left in pruned if left == entry or any(knob.base in left for knob in knobs)]
        kept.update({within: entries} if entries else {})
    return kept


def limited(knobs: Sequence[Knob], options: Options, names: AbstractSet[str]) -> Dict[str, Any]:
    """The options that set the knobs of these names, those that say how, and those of no knob."""
    chosen = [knob for knob in knobs if knob.spec is not None and not names.isdisjoint(knob.names)]
    others = {knob.name for knob in knobs if knob.spec is not None and knob not in chosen}
    manner = {option for knob in chosen for option in knob.manner}
    kept = without(knobs, options, others)
    return {**kept, **{option: options[option] for option in manner.intersection(options)}}


def merged(knobs: Sequence[Knob], earlier: Options, now: Options) -> Dict[str, Any]:
    """The options of both, which set different knobs; two entries for one device become one."""
    both = _joined(earlier, now)
    for within in {knob.within for knob in knobs}.intersection(earlier, now):
        entries: Dict[Tuple[Tuple[str, Any], ...], Dict[str, Any]] = {}
        for entry in (*earlier[within], *now[within]):
            device = tuple((option, entry[option]) for option in entry if all(knob.base != option for knob in knobs))
            entries[device] = _joined(entries.get(device, {}), entry)
        both[within] = list(entries.values())
    return both


def _joined(earlier: Options, now: Options) -> Dict[str, Any]:
    tables = [option for option in now if isinstance(now[option], Mapping) and option in earlier]
    return {**earlier, **now, **{option: {**earlier[option], **now[option]} for option in tables}}


def _pruned(options: Options, dropped: Sequence[Knob]) -> Dict[str, Any]:
    """The options, or an entry of a list, without those of these knobs."""
    kept = dict(options)
    for knob in dropped:
        value = kept.pop(knob.base, None)
        rest = {part: word for part, word in value.items() if part != knob.part} if knob.part and value else {}
        if any(word is not None for word in rest.values()):
            kept[knob.base] = rest
    return kept
