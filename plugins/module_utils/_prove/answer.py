# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict that a record has, with its reason. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import List, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove import rules
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.evidence import NEEDED
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.history import History, differences
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.rules import BETTER, CAPPED, SAME, UNCLEAR, WORSE

_WORDS = {BETTER: "better", WORSE: "worse", SAME: "the same"}


def measured(history: History) -> bool:
    """Whether there is a figure that decides."""
    return history.primary in [metric.name for metric in history.kinds]


def selecting(history: History) -> str:
    """The state whose guards made a selection of the pairs that count; "" where chance explains what they voided."""
    return rules.lopsided([attempt for attempt in history.pairs if attempt.over and not attempt.valid])


def answer_of(record: Record, history: History) -> "Tuple[rules.Answer, List[str]]":
    """The verdict with its reason, and what else has to be said."""
    hindered = rules.obstacle(record, history)
    if hindered is not None:
        return hindered, []
    if not measured(history):
        return rules.Answer(UNCLEAR, "the run ended before anything was measured"), []
    if rules.sham_differs(history):
        return rules.Answer(
            UNCLEAR,
            f"{rules.MOST_SHAMS} of {rules.MOST_SHAMS} sham pairs, in which nothing was changed, differ in one"
            " direction: the way of measuring favors a state; look at what the load leaves behind",
        ), []
    answer = _by_evidence(record, history)
    uncertain = rules.not_cleared(record.start.settings, history) if answer.verdict == BETTER else []
    selected = selecting(history)
    capped = history.guards["allowance"]
    if selected and answer.verdict in (BETTER, WORSE, SAME):
        return rules.Answer(
            CAPPED if capped else UNCLEAR,
            f"guards voided more attempts in the {selected} state than chance explains, so the pairs that are left are"
            f" a selection (they look {_WORDS[answer.verdict]})",
        ), []
    if capped and answer.verdict in (SAME, UNCLEAR) and rules.ends(record, history):
        return rules.Answer(
            CAPPED,
            f"in {capped} attempts the instance's network or disk allowance was exceeded: what the tuning could bring"
            " beyond it can't be seen",
        ), [answer.reason]
    if uncertain:
        return answer, [
            f"that {' and '.join(uncertain)} lost {record.start.settings.margin:g} % or more isn't excluded"
        ]
    return answer, []


def _by_evidence(record: Record, history: History) -> "rules.Answer":
    settings = record.start.settings
    harmed = rules.harmed(history)
    if harmed:
        return rules.Answer(WORSE, f"{' and '.join(harmed)} became worse")
    word = rules.decision(settings, history)
    pairs = len(differences(history.pairs, history.primary))
    if word == UNCLEAR:
        return rules.Answer(UNCLEAR, "the pairs show both a gain and a loss: the effect changed during the run")
    said = {
        SAME: f"{history.primary} changes by less than {settings.margin:g} %, if at all",
        BETTER: f"{history.primary} is better with evidence of more than {NEEDED:.0f}:1",
        WORSE: f"{history.primary} is worse with evidence of more than {NEEDED:.0f}:1",
    }
    suspected = rules.suspected(settings, history) if rules.pairs_done(settings, history) else []
    if word == BETTER and suspected:
        return rules.Answer(
            UNCLEAR,
            f"{said[word]}, but {' and '.join(suspected)} may have lost {settings.margin:g} % or more, which {pairs}"
            " pairs don't decide",
        )
    if word:
        return rules.Answer(word, said[word], by_primary=True)
    if pairs >= settings.pairs:
        reason = f"{pairs} pairs, as many as allowed, don't decide about {history.primary}"
        return rules.Answer(UNCLEAR, reason, undecided=True)
    return rules.Answer(UNCLEAR, f"the run isn't over: {pairs} of at most {settings.pairs} pairs")
