# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `nearmetal` and their options. PRIVATE to the collection."""

from __future__ import annotations

import argparse
import re
from typing import Any, Dict, List, NoReturn

from .._version import VERSION

_UNKNOWN = re.compile(r"(?:invalid choice: '|unrecognized arguments: )([\w-]+)", re.ASCII)
_OFFERED = re.compile(r"\(choose from .*\)")
_COMPLETE = """_nearmetal() {{
    local words="{commands}"
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    [ "$COMP_CWORD" != 1 ] || words="{commands} --help --version"
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _nearmetal nearmetal"""


class Parser(argparse.ArgumentParser):
    """Names the command or option that was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse a word where it stands, because only an option of its command can be meant."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        import difflib

        mistyped = _UNKNOWN.search(message)
        known = list(words_of(self) if self._subparsers else self._option_string_actions)
        if message.startswith("argument COMMAND"):
            message = _OFFERED.sub(f"(choose from {', '.join(known)})", message)
        close = difflib.get_close_matches(mistyped[1], known, 1) if mistyped else []
        super().error(f"{message}: did you mean {close[0]}?" if close else message)


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    about = "Look at what nearmetal.ec2 tuned on this host, set it again, or take it back."
    top = Parser(prog="nearmetal", description=about)
    top.add_argument("--version", action="version", version=f"nearmetal.ec2 {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")

    status = command("status", "show what is tuned, by which run, what has changed since, and how to take it back")
    status.add_argument("--json", action="store_true", help="print JSON")
    plan = command("plan", "show what reapply would change, and change nothing")
    plan.add_argument(
        "--from", dest="file", metavar="FILE", help="show what tune would change on a captured host; - reads it"
    )
    plan.add_argument("--workload", help="with --from: plan these workloads (web,cache, or auto), not the host's own")
    plan.add_argument("--program", help="with --from: plan for these programs too (redis,mongodb=8.0, or auto)")
    plan.add_argument("--allow-not-ec2", action="store_true", help="with --from: plan a host outside EC2 too")
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--commands", action="store_true", help="print shell commands that would do the same")
    topology = command(
        "topology", "describe CPUs, caches, nodes, NICs, disks and queues, or draw them into a file (SVG)"
    )
    topology.add_argument("--from", dest="file", metavar="FILE", help="draw a captured host")
    topology.add_argument("--workload", help="with --from: also draw it after tuning for these (web,cache, or auto)")
    topology.add_argument("--text", action="store_true", help="describe it in words, as on a terminal")
    reapply = command("reapply", "set the wanted values again, planned for the size that the host has now")
    reapply.add_argument("--if-changed", action="store_true", help="only if queues, interrupts, CPUs or disks changed")
    command("confirm", "keep a network change that waits for confirmation")
    # A timer runs it, so no list of commands shows it.
    commands.add_parser("expire").add_argument("timer", choices=("dead-man", "prove", "rollout"))
    command("capture", "print the files that a plan reads on this host as one JSON document, for a bug report")
    restore = command("restore", "take back what was tuned: the named concerns, or everything")
    restore.add_argument("--check", action="store_true", help="show what would be taken back, and change nothing")
    restore.add_argument("concern", nargs="*", help="a concern such as clocksource; without one, everything")
    command("completion", "print what makes bash complete these commands: source <(nearmetal completion)")
    return top


def words_of(top: argparse.ArgumentParser) -> Dict[str, List[str]]:
    """Each command that people run → its options."""
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    shown = [action.dest for action in commands._choices_actions]
    return {name: [word for word in commands.choices[name]._option_string_actions if word[1] == "-"] for name in shown}


def completion() -> str:
    """A script for bash."""
    from .._concerns.registry import CONCERNS

    words = words_of(parser())
    words["restore"] += CONCERNS
    cases = "\n".join(f'    {name}) words="{" ".join(options)}" ;;' for name, options in words.items())
    return _COMPLETE.format(commands=" ".join(words), cases=cases)
