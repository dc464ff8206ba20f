# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of `tune`, `restore` and the unit to the requests of a run. Pure. PRIVATE to the collection."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, AbstractSet, Any, Container, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .._concerns.registry import CONCERNS
from .._error import NearmetalError
from .._memory.stored import CHOICE, Stored
from .._mistakes import Mistakes
from .._plan import PROGRAM, Finding, Wanted
from .._planning.concern import Concern
from .._planning.knob import limited, merged, without
from .._planning.options import COMMON, validate
from .._planning.waivers import (
    REFERENCE,
    UNWANTED,
    excluded_options,
    flaws_of_idle,
    managed,
    only_options,
    waivers_by_concern,
)
from .._requests.recognized import KNOB, stored_choice, with_choice
from .._words import LONGEST_VALUE, choices, shown
from .._workloads import base
from .._workloads.workload import values
from .planning import Export, Leave, Remember, Request, Restore, Tune
from .session import Known

if TYPE_CHECKING:
    from .._requests.combined import Contradiction
    from .._requests.program_values import Claim

_BASE = values(base.OWN)
_FORGOTTEN = (Finding(CHOICE, KNOB, "advice", "what auto recognized on this host is forgotten", reference=REFERENCE),)


def manages_nothing(concern: Concern, options: Mapping[str, Any]) -> bool:
    """Whether the options manage no knob of a concern that has knobs."""
    knobs = managed(concern)
    return bool(knobs) and not any(options.get(knob) is not None for knob in knobs)


def base_options(concern: Concern, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of `base` for a concern whose own options manage nothing."""
    return _BASE.get(concern.name, {}) if manages_nothing(concern, options) else {}


def nothing_wanted(concern: Concern) -> Request:
    """The request that changes nothing and names the concern's options, or their first and where all are."""
    knobs = managed(concern)
    sentence = (
        f"no option was given, and the workload base has nothing for {concern.name}: nothing is changed, and what an"
        f" earlier run set stays until state: restored; roles/{concern.name}/README.md describes its options, in the"
        f" role with {concern.name}_ before them: "
    )
    return leave(concern.name, sentence + choices(knobs, limit=LONGEST_VALUE - len(sentence)))


def leave(name: str, reason: str) -> Leave:
    """The request that leaves a concern as it is, for this reason."""
    return Leave(name, (Finding(name, "state", "advice", reason, reference="docs/unit.md"),))


def wanted_or_base(concern: Concern, options: Mapping[str, Any]) -> Request:
    """The request for these options, or for those of `base` when they manage nothing and `base` has some."""
    of_base = base_options(concern, options)
    if manages_nothing(concern, {**options, **of_base}):
        return nothing_wanted(concern)
    return Tune(concern.name, concern, Wanted({**options, **of_base}, dict.fromkeys(of_base, "workload")))


def tune_requests(
    workloads: Sequence[str],
    concerns: Mapping[str, Any],
    common: Mapping[str, Any],
    on_host: Known = MappingProxyType({}),
    prune: bool = False,
    exclude: Sequence[Any] = (),
    waivers: Sequence[Any] = (),
    workload_concerns: Mapping[str, Any] = MappingProxyType({}),
    findings: Sequence[Finding] = (),
    programs: Optional[Sequence[str]] = None,
    only: Sequence[Any] = (),
    metrics: Optional[str] = None,
    claims: Sequence[Claim] = (),
    asking: Optional[Sequence[str]] = None,
) -> List[Request]:
    """The requests of one `tune` run, in the registry's order.

    `workload_concerns`: concern → options of a playbook that spells its workload out, in place of `workloads`. Of
    `workloads` the later one wins where they contradict each other, which is a finding unless the user decided it.
    `concerns`: concern → the user's options, which win over both, and count as the user's even where they repeat a
    value. `common`: options that every concern takes. A concern without options has those of the workload, or of
    `base`. `on_host`: what is stored; a concern in it that this run leaves out stays, or with `prune` is taken back.
    `exclude`: knobs that are left out, whoever wants them. `waivers`: knobs that stay as the host has them.
    `findings`: those of the choice of workloads. `programs`: those that led to the choice; None for those of an
    earlier run. `only`: concerns and knobs to which the run is limited; all others stay as the host has them stored.
    `metrics`: the directory to which the unit exports; None leaves it, or with `prune` ends it.
    `claims`: what the host's programs ask for, which wins over the workload. `asking`: those programs, where `auto`
    recognized them; None for those of an earlier run.
    Raises NearmetalError for unknown concerns, options or knobs, all of them at once.
    """
    mistakes = Mistakes(_unknown((*workload_concerns, *concerns), CONCERNS))
    known = with_choice() if exclude or waivers else CONCERNS
    left_out: Dict[str, Set[str]] = mistakes.of(excluded_options, exclude, known)
    waived: Dict[str, List[Any]] = mistakes.of(waivers_by_concern, waivers, known, left_out)
    limits: Dict[str, Set[str]] = mistakes.of(only_options, only, CONCERNS)
    if only and prune:
        mistakes.found.append(
            "tune_only leaves everything else as it is, and tune_prune takes it back: give one of the two"
        )
    # Imported late, because the unit, which plans from what is stored, never needs it.
    from .._requests.combined import chooser, combined, reason_of
    from .._requests.program_values import asked, overruled

    named, contradictions = combined(workloads, CONCERNS)
    of_programs = {claim.wish.knob.partition(".")[0] for claim in claims}
    from_workload: Mapping[str, Any] = workload_concerns or named
    requests: List[Request] = []
    for name in CONCERNS:
        if not {name} & {*from_workload, *concerns, *of_programs} or (limits and name not in limits):
            continue
        with mistakes:
            concern = CONCERNS[name]
            of_user = _options("concerns", concern, concerns.get(concern.name))
            of_workload = _options("workload_concerns", concern, from_workload.get(concern.name))
            if concern.name not in from_workload:
                of_workload = base_options(concern, of_user)

            def who(option: str, value: Any, name: str = name) -> str:
                return chooser(("base", *workloads), name, option, value) or "the playbook"

            program = asked(claims, concern, of_workload, who)
            of_workload = {**of_workload, **program.values}
            options = validate(concern.name, {**COMMON, **concern.options}, {**common, **of_workload, **of_user})
            if manages_nothing(concern, options):
                requests.append(nothing_wanted(concern))
                continue
            options = without(concern.knobs, options, left_out.get(concern.name, frozenset()))
            if concern.name in waived:
                options["waivers"] = waived[concern.name]
            by: Dict[str, str] = {
                option: "workload" for option in of_workload if option in options and of_user.get(option) is None
            }
            by.update(dict.fromkeys(program.exact.intersection(by), PROGRAM))
            if limits:
                options = limited(concern.knobs, options, limits[name])
                if manages_nothing(concern, options) and name not in on_host:
                    continue
                by = {option: origin for option, origin in by.items() if option in options}
            checks = left_out.get(concern.name, set()).intersection(concern.checks)
            open_questions = [*(() if workload_concerns else contradictions), *program.contradictions]
            undecided = _undecided(open_questions, concern, by, program.values)
            reasons = {option: reason_of(("base", *workloads), name, option, of_workload[option]) for option in by}
            reasons.update({option: reason for option, reason in program.reasons.items() if option in by})
            reasons.update(overruled(claims, concern, of_user))
            wanted = Wanted(options, by, reasons={option: reason for option, reason in reasons.items() if reason})
            if limits:
                wanted = _beside_earlier(concern, wanted, limits[name], on_host.get(name))
            requests.append(Tune(concern.name, concern, wanted, excluded=frozenset(checks), findings=undecided))
    mistakes.require_none()
    wanted_here = {request.name for request in requests}
    requests += [_not_wanted(name, limits[name], workloads) for name in limits if name not in wanted_here]
    if not requests and not findings:
        raise NearmetalError("nothing to tune: tune_workload and tune_concerns are empty; base is for every host")
    flaws = flaws_of_idle(waived, {CHOICE, *(request.name for request in requests if isinstance(request, Tune))})
    findings = (
        *findings,
        *(Finding(CHOICE, "waivers", "advice", flaws[name], where=name, reference=REFERENCE) for name in flaws),
    )
    choice = on_host.get(CHOICE)
    keep = choice if limits else stored_choice(choice, programs, asking)
    if findings or (keep is None) is not (choice is None):
        requests.insert(0, Remember(CHOICE, tuple(findings), keep))
    if metrics is not None and not limits:
        requests.append(Export(metrics))
    named_now = {CHOICE, *(request.name for request in requests)}
    unnamed = {name: stored for name, stored in on_host.items() if name not in named_now}
    if prune:
        # First, so that what builds on the host's own values is planned on them.
        return [*(Restore(name, CONCERNS.get(name)) for name in unnamed), *requests]
    return [*requests, *(leave(name, _stays(stored)) for name, stored in unnamed.items())]


def _not_wanted(name: str, limit: AbstractSet[str], workloads: Sequence[str]) -> Request:
    """The request for a concern of a limited run that this host has no wish for; other hosts of the run may have."""
    of_workload = f"the workload {', '.join(workloads)}" if workloads else "a workload"
    reason = f"neither {of_workload} nor tune_concerns wants it on this host{UNWANTED}"
    knob = min(limit) if len(limit) == 1 else "state"
    return Leave(name, (Finding(name, knob, "not_applicable", reason, reference=REFERENCE),))


def _beside_earlier(concern: Concern, wanted: Wanted, limit: AbstractSet[str], stored: Optional[Stored]) -> Wanted:
    """What is wanted of the knobs of a limited run, and beside it what an earlier run has stored for the others."""
    if stored is None:
        return wanted
    earlier = stored.wanted(concern)
    others = {knob.name for knob in concern.knobs if limit.isdisjoint(knob.names)}
    kept = {option: earlier.options[option] for option in managed(concern) if option in earlier.options}
    kept = without(concern.knobs, kept, limit)
    waivers = [waiver for waiver in wanted.get("waivers") or () if waiver["knob"] not in others]
    waivers += [waiver for waiver in earlier.get("waivers") or () if waiver["knob"] in others]
    options = merged(concern.knobs, kept, wanted.options)
    options = {**options, "waivers": waivers} if waivers else without((), options, {"waivers"})
    by = {option: origin for option, origin in earlier.by.items() if option in kept.keys() - wanted.options.keys()}
    for knob in concern.knobs:
        if knob.within in kept and knob.within in wanted.options:  # a list of which each run wants a part
            for_entry = (earlier if knob.name in others else wanted).for_entry(knob.within, {knob.base: None})
            by[f"{knob.within}.{knob.base}"] = for_entry.wanted_by(knob.base)
    return wanted._replace(options=options, by={**by, **wanted.by})


def _undecided(
    contradictions: Sequence[Contradiction], concern: Concern, by: Mapping[str, str], of_programs: Mapping[str, Any]
) -> Tuple[Finding, ...]:
    """A finding for each option of the concern on which workloads or programs differ, unless somebody above decides."""
    return tuple(
        Finding(
            concern.name, contradiction.option, "advice", contradiction.sentence(), reference=contradiction.reference
        )
        for contradiction in contradictions
        if contradiction.concern == concern.name
        and by.get(contradiction.option) in ("workload", PROGRAM)
        and (contradiction.of_programs or contradiction.option not in of_programs)
    )


def _options(name: str, concern: Concern, given: Any) -> Mapping[str, Any]:
    """The options that the variable `name` has for a concern; null means none.

    Raises NearmetalError for anything but a mapping, which may be meant to leave the concern out.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        knob = (managed(concern) or concern.checks)[0]
        raise NearmetalError(
            f"{name}.{concern.name} must be a mapping of options, not {shown(given)}; to leave {concern.name} out, name"
            f" its knobs, as in tune_exclude: [{concern.name}.{knob}]"
        )
    return given


def _unknown(names: Sequence[Any], known: Container[str]) -> List[str]:
    all_names = sorted(CONCERNS)
    return [f"concern {shown(n)} is unknown; there are {choices(all_names, n)}" for n in names if n not in known]


def _stays(stored: Optional[Stored]) -> str:
    run = f"the run of {stored.run_and_time}" if stored and not stored.damage else "an earlier run"
    return f"not in this run, so it stays as {run} left it; prune: true takes it back"


def restore_requests(names: Optional[List[str]], restorable: Known) -> List[Request]:
    """The requests of one `restore` run: the concerns named, or all that the host knows.

    Raises NearmetalError for a concern that neither the collection nor the host knows.
    """
    Mistakes(_unknown(names or (), {**CONCERNS, **restorable})).require_none()
    # In the order of a restore, in which one concern brings back what another has tuned.
    chosen = [name for name in restorable if names is None or name in names]
    chosen += [name for name in dict.fromkeys(names or ()) if name not in restorable]
    return [Restore(name, CONCERNS.get(name)) if name != CHOICE else Remember(CHOICE, _FORGOTTEN) for name in chosen]


def stored_requests(on_host: Known) -> List[Tune]:
    """The requests of the unit: those stored that are to hold after a reboot, in the registry's order."""
    return [request for request in all_stored(on_host) if request.stored and request.stored.outlives_boots]


def all_stored(on_host: Known) -> List[Tune]:
    """The requests for every stored concern that this version knows, in the registry's order."""
    return [Tune(name, CONCERNS[name], stored=on_host[name]) for name in CONCERNS if on_host.get(name) is not None]
