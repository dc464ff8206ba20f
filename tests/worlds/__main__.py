# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put prove through the worlds, or serve a world to any other tool. See README.md."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Sequence

from tests.worlds.host import WORLDS, Host


def main() -> int:
    """Do what the arguments say; 1 if prove breaks its word in one of the worlds."""
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    rates = commands.add_parser("rates", help="how often prove keeps the tuning in each world")
    rates.add_argument("worlds", nargs="*", help="their names; all by default")
    rates.add_argument("--runs", type=int, default=2000)
    rates.add_argument("--jobs", type=int, default=1, help="how many worlds are run at the same time")
    serve = commands.add_parser("serve", help="be the host: untuned, tuned or load on each line of the input")
    serve.add_argument("world", choices=WORLDS)
    serve.add_argument("seed", type=int)
    arguments = parser.parse_args()
    if arguments.command == "serve":
        _serve(Host(WORLDS[arguments.world], arguments.seed))
        return 0
    return _print_rates(arguments.worlds or list(WORLDS), arguments.runs, arguments.jobs)


def _print_rates(names: "Sequence[str]", runs: int, jobs: int) -> int:
    from tests.worlds.rates import is_broken, rate_of  # imported late: it needs the product

    print("| world | truth | keep | kept | loads | verdicts |\n|---|---|---|---|---|---|")
    broken = 0
    several = ProcessPoolExecutor(jobs)
    for name, rate in zip(names, several.map(rate_of, names, [runs] * len(names))):
        world = WORLDS[name]
        low, high = rate.interval
        words = ", ".join(f"{word} {count}" for word, count in rate.verdicts.items())
        kept = f"{rate.kept / runs:.1%} ({low:.1%} to {high:.1%}){' **broken**' if is_broken(world, rate) else ''}"
        broken += is_broken(world, rate)
        print(f"| {name} | {world['truth']:+g} % | {world['keep']} | {kept} | {rate.loads:.0f} | {words} |", flush=True)
    return 1 if broken else 0


def _serve(host: Host) -> None:
    for line in sys.stdin:
        if line.strip() != "load":
            host.switch(line.strip())
            continue
        load = host.load()
        figures = " ".join(f"{name} {value:.6g}" for name, value in load.figures.items())
        print(f"{figures or 'failed'} {load.guard}".strip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
