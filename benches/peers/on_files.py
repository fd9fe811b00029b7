"""Onceseal beside ctrlrun and DBOS, each on a file of its own: actions that are carried
out at once, and operations that are stored and then carried out by one worker.

Each peer runs at the durability it ships with, which the table names; a durable row and
one that a power loss can take back are not equals.
"""
import tempfile

import programs
from figures import Figures, number, table, times
from programs import Onceseal

PEERS = {
    # name: (package, script, what a commit survives)
    "ctrlrun": ("ctrlrun==0.12.2", "ctrlrun_peer.py", "a killed process (synchronous=NORMAL)"),
    "ctrlrun, FULL forced": ("ctrlrun==0.12.2", "ctrlrun_peer.py", "a power loss"),
    "dbos": ("dbos==3.4.0", "dbos_peer.py", "a power loss"),
    "dbos queue": ("dbos==3.4.0", "dbos_queue_peer.py", "a power loss"),
}


def peer(name: str, seconds: float, threads: int) -> list[float]:
    package, script, _ = PEERS[name]
    with tempfile.TemporaryDirectory(dir=programs.SCRATCH) as place:
        command = [programs.interpreter(package), programs.HERE / script, place, str(seconds), str(threads)]
        if "FULL" in name:
            command.append("full")
        return [float(line) for line in programs.together([command], ready=True)[0].split()]


def survives(name: str) -> str:
    return PEERS[name][2] if name in PEERS else "a power loss"


def measure(onceseal: Onceseal, figures: Figures, seconds: float, rounds: int) -> None:
    for figures.round in range(rounds):
        for row in onceseal.bench(seconds, "--rounds", "1")["figures"]:
            figures.add("actions", "onceseal", row["callers"], per_s=row["actions_per_s"])
        for name in ("ctrlrun", "ctrlrun, FULL forced", "dbos"):
            for threads in (1, 8):
                figures.add("actions", name, threads, per_s=peer(name, seconds, threads)[0])
    print(actions(figures), flush=True)
    for figures.round in range(rounds):
        told = onceseal.bench(seconds, "--operations", "--callers", "256")
        stored, carried = told["dispatched_per_s"], told["carried_out_per_s"]
        figures.add("operations", "onceseal", 256, stored_per_s=stored, carried_per_s=carried)
        stored, carried = peer("dbos queue", seconds, 8)
        figures.add("operations", "dbos queue", 8, stored_per_s=stored, carried_per_s=carried)
    print("\n" + operations(figures))


def actions(figures: Figures) -> str:
    _, most = figures.best("actions", "onceseal", "per_s")
    rows = []
    for name in figures.systems("actions"):
        for callers in figures.clients("actions", name):
            pace = figures.median("actions", name, callers, "per_s")
            rows.append([name, callers, number(pace), times(most, pace), survives(name)])
    return table(["system", "callers", "actions/s", "onceseal at its best is", "survives"], rows, (0, 4))


def operations(figures: Figures) -> str:
    ours = [figures.best("operations", "onceseal", name)[1] for name in ("stored_per_s", "carried_per_s")]
    rows = []
    for name in figures.systems("operations"):
        stored, carried = [figures.best("operations", name, of)[1] for of in ("stored_per_s", "carried_per_s")]
        ratios = times(ours[0], stored), times(ours[1], carried)
        rows.append([name, number(stored), ratios[0], number(carried), ratios[1], survives(name)])
    headings = ["system", "stored/s", "onceseal is", "carried out/s", "onceseal is", "survives"]
    return table(headings, rows, (0, 5))
