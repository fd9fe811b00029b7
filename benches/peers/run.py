#!/usr/bin/env python3
"""Runs Onceseal beside ctrlrun and DBOS, in turn, and prints ratios.

    python3 benches/peers/run.py [--seconds 3] [--rounds 3]

Two tables: actions that are carried out at once, and operations that are stored
and then carried out by one worker. Makes one virtual environment per peer under target/peers. Each peer runs at the
durability it ships with, which the table names; a durable row and one that a
power loss can take back are not equals. Only ratios within one run mean anything.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "target" / "peers"
PEERS = {
    # name: (package, script, what a commit survives)
    "ctrlrun": ("ctrlrun==0.12.2", "ctrlrun_peer.py", "a killed process (synchronous=NORMAL)"),
    "ctrlrun, FULL forced": ("ctrlrun==0.12.2", "ctrlrun_peer.py", "a power loss"),
    "dbos": ("dbos==3.4.0", "dbos_peer.py", "a power loss"),
    "dbos queue": ("dbos==3.4.0", "dbos_queue_peer.py", "a power loss"),
}


def interpreter(package: str) -> pathlib.Path:
    home = SCRATCH / package.replace("==", "-")
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
        (home / "ready").touch()
    return python


def peer(name: str, seconds: float, threads: int) -> list[float]:
    package, script, _ = PEERS[name]
    with tempfile.TemporaryDirectory(dir=SCRATCH) as place:
        command = [interpreter(package), pathlib.Path(__file__).parent / script, place, str(seconds), str(threads)]
        if "FULL" in name:
            command.append("full")
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [float(line) for line in output.split()]


def bench(seconds: float, *more: str) -> dict:
    program = ROOT / "target" / "release" / "onceseal"
    command = [program, "bench", "--json", "--seconds", str(seconds), *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=SCRATCH).stdout)


def actions(seconds: float, rounds: int) -> None:
    measured: dict = {}
    for _ in range(rounds):
        for row in bench(seconds, "--rounds", "1")["figures"]:
            measured.setdefault(("onceseal", row["callers"]), []).append(row["actions_per_s"])
        for name in ("ctrlrun", "ctrlrun, FULL forced", "dbos"):
            for threads in (1, 8):
                measured.setdefault((name, threads), []).extend(peer(name, seconds, threads))
    median = {key: statistics.median(values) for key, values in measured.items()}
    most = max(pace for (name, _), pace in median.items() if name == "onceseal")
    print(f"{'system':24} {'callers':>7} {'actions/s':>10} {'onceseal at its best is':>24}   survives")
    for (name, callers), pace in median.items():
        print(f"{name:24} {callers:7} {pace:10.0f} {most / pace:23.1f}x   {survives(name)}")


def operations(seconds: float, rounds: int) -> None:
    measured: dict = {"onceseal": [], "dbos queue": []}
    for _ in range(rounds):
        told = bench(seconds, "--operations", "--callers", "256")
        measured["onceseal"].append([told["dispatched_per_s"], told["carried_out_per_s"]])
        measured["dbos queue"].append(peer("dbos queue", seconds, 8))
    median = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in measured.items()}
    ours = median["onceseal"]
    print(f"\n{'system':24} {'stored/s':>10} {'onceseal is':>12} {'carried out/s':>14} {'onceseal is':>12}   survives")
    for name, (stored, carried) in median.items():
        ratios = ours[0] / stored, ours[1] / carried
        print(f"{name:24} {stored:10.0f} {ratios[0]:11.1f}x {carried:14.0f} {ratios[1]:11.1f}x   {survives(name)}")


def survives(name: str) -> str:
    return PEERS[name][2] if name in PEERS else "a power loss"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=3)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "onceseal-cli"], check=True, cwd=ROOT)
    actions(given.seconds, given.rounds)
    operations(given.seconds, given.rounds)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
