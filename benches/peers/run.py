#!/usr/bin/env python3
"""Runs Onceseal beside its peers, in turn, and prints medians and ratios.

    python3 benches/peers/run.py                on files: ctrlrun and DBOS
    python3 benches/peers/run.py --postgres     on a server: pgbench, ctrlrun, DBOS and pg-boss

Peers are installed from PyPI and npm under target/peers, where they are missing. The
server is a throwaway one on a disk, ended and removed afterwards; it takes some 8 GB.
Only ratios within one run mean anything.
"""
import argparse
import os
import pathlib
import signal
import sys

import on_files
import on_postgres
import programs
from figures import Figures
from server import Server, binaries


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=3, help="for each figure")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--program", type=pathlib.Path, help="onceseal, instead of building it")
    arguments.add_argument("--json", type=argparse.FileType("w"), help="a file for each figure as a line of JSON")
    arguments.add_argument("--postgres", action="store_true", help="on a PostgreSQL server instead of files")
    arguments.add_argument("--dir", default="/var/tmp", help="on the disk that the server is to use")
    arguments.add_argument("--pg-bin", help="the directory of PostgreSQL's programs, instead of the newest")
    arguments.add_argument("--scale", type=int, default=50, help="of pgbench: 15 MB each")
    given = arguments.parse_args()
    # What was started is ended with us.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    programs.SCRATCH.mkdir(parents=True, exist_ok=True)
    program, figures = given.program or programs.built(), Figures(given.json)
    if given.postgres:
        with Server(given.dir, binaries(given.pg_bin)) as server:
            on_postgres.measure(server, program, figures, given.seconds, given.rounds, given.scale)
    else:
        on_files.measure(programs.Onceseal(program), figures, given.seconds, given.rounds)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
