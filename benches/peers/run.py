#!/usr/bin/env python3
"""Runs Onceseal beside its peers, in turn, and prints medians and ratios.

    python3 benches/peers/run.py [--seconds 3] [--rounds 3]

Peers are installed from PyPI under target/peers, where they are missing.
Only ratios within one run mean anything.
"""
import argparse
import os
import pathlib
import signal
import sys

import on_files
import programs
from figures import Figures


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=3, help="for each figure")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--program", type=pathlib.Path, help="onceseal, instead of building it")
    arguments.add_argument("--json", type=argparse.FileType("w"), help="a file for each figure as a line of JSON")
    given = arguments.parse_args()
    # What was started is ended with us.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    programs.SCRATCH.mkdir(parents=True, exist_ok=True)
    program, figures = given.program or programs.built(), Figures(given.json)
    on_files.measure(programs.Onceseal(program), figures, given.seconds, given.rounds)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
