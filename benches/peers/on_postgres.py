"""Onceseal, PostgreSQL's own pgbench and the peers on one throwaway server, in turn.

Everybody's commits are on the disk before they are answered: `fsync` and
`synchronous_commit` are on. pgbench has a database of its own; each other figure has
a schema of its own, which is dropped after it.
"""
import os
import re

import programs
from figures import Figures, number, table, times
from programs import Onceseal
from server import SETTINGS, Server

CALLERS = (1, 16, 64, 256)
# Processes and their callers, beside one process with as many callers in all.
TOGETHER = {(4, 1): 1, (4, 64): 256}
# Processes and their callers, beside whom as many hold a key each, then one key; how
# much of their pace the callers are to keep.
HOT, KEPT = (2, 64), 0.8

CTRLRUN = "ctrlrun[postgres]==0.12.2 psycopg[binary]"
DBOS = "dbos==3.4.0"
PG_BOSS = "pg-boss@10.4.2"
# A script of Python is held to one core, so several processes are tried too.
ACTIONS = {"ctrlrun": (CTRLRUN, "ctrlrun_peer.py"), "dbos": (DBOS, "dbos_peer.py")}
ACTIONS_BY = ((1, 8), (1, 32), (4, 8))
QUEUES_BY = (8, 32)
# How many jobs are fetched and completed in one statement. All of them are done again
# where a process ends in between.
PG_BOSS_BY = {1: "pg-boss", 64: "pg-boss, 64 in one"}


class Comparison:
    """The systems on one server."""

    def __init__(self, server: Server, program: os.PathLike, figures: Figures, seconds: float) -> None:
        self.server, self.figures, self.seconds = server, figures, seconds
        self.onceseal = Onceseal(program, server.environment())
        self.node_modules = programs.node_modules(PG_BOSS)
        self.schemas = 0

    def schema(self) -> str:
        self.schemas += 1
        return f"peers_{self.schemas}"

    def clean(self) -> None:
        """Drops what a figure left, so that the next does not pay for looking after it."""
        schemas = self.server.sql("peers", "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(bench|peers)_'")
        for schema in schemas:
            self.server.sql("peers", f'SET client_min_messages = error; DROP SCHEMA "{schema}" CASCADE')

    def prepare(self, scale: int) -> None:
        for database in ("peers", "pgbench"):
            self.server.sql("postgres", f"CREATE DATABASE {database}")
        self.server.run("pgbench", "-i", "-q", "-s", str(scale), "pgbench")
        self.server.sql("postgres", "CHECKPOINT")

    def round(self) -> None:
        for callers in CALLERS:
            # The yardstick next to the most.
            if callers == CALLERS[-1]:
                self.pgbench()
            self.actions(callers)
        for processes, callers in TOGETHER:
            self.processes("processes", processes, callers)
        for others in ("beside", "hot"):
            processes, callers = HOT
            self.processes(others, processes, callers, f"--{others}", str(callers))
        for name, (packages, script) in ACTIONS.items():
            for processes, threads in ACTIONS_BY:
                command = [programs.interpreter(packages), programs.HERE / script]
                printed = self.peer(command, processes, threads)
                clients = f"{threads}" if processes == 1 else f"{processes} x {threads}"
                self.figures.add("actions", name, clients, per_s=sum(figures[0] for figures in printed))
        self.operations()
        self.queues()

    def pgbench(self) -> None:
        for protocol in ("simple", "prepared"):
            options = ["-n", "-N", "-c", "32", "-j", str(min(32, os.cpu_count() or 1)), "-M", protocol]
            options += ["-T", str(max(1, round(self.seconds)))]
            told = self.server.run("pgbench", *options, "pgbench")
            pace = re.search(r"^tps = ([0-9.]+)", told, re.MULTILINE)
            if pace is None:
                raise SystemExit(f"pgbench ended no transaction in so short a time; give more --seconds:\n{told}")
            name = "pgbench -N" if protocol == "simple" else f"pgbench -N -M {protocol}"
            self.figures.add("actions", name, 32, per_s=float(pace[1]))

    def actions(self, callers: int) -> None:
        address = self.server.address("peers")
        told = self.onceseal.bench(self.seconds, "--server", address, "--rounds", "1", "--callers", str(callers))
        [row] = told["figures"]
        of = {"per_s": row["actions_per_s"], "p50_ms": row["p50_us"] / 1000, "p99_ms": row["p99_us"] / 1000}
        self.figures.add("actions", "onceseal", callers, **of, bytes=row["bytes_per_action"])
        self.clean()

    def processes(self, what: str, processes: int, callers: int, *others: str) -> None:
        """Several processes on one store."""
        several = ["--processes", str(processes), "--callers", str(callers), *others]
        told = self.onceseal.bench(self.seconds, "--server", self.server.address("peers"), *several)
        rows = told["processes"]
        of = {"per_s": sum(row["actions_per_s"] for row in rows), "p99_ms": max(row["p99_us"] for row in rows) / 1000}
        of |= {"least": min(row["fair_share"] for row in rows), "others_per_s": sum(row["others_per_s"] for row in rows)}
        self.figures.add(what, "onceseal", f"{processes} x {callers}", **of)
        self.clean()

    def operations(self) -> None:
        address = self.server.address("peers")
        told = self.onceseal.bench(self.seconds, "--server", address, "--operations", "--callers", "256")
        paces = {"stored_per_s": told["dispatched_per_s"], "carried_per_s": told["carried_out_per_s"]}
        self.figures.add("operations", "onceseal", 256, **paces, left=told["left_waiting"])
        self.clean()

    def queues(self) -> None:
        for callers in QUEUES_BY:
            command = [programs.interpreter(DBOS), programs.HERE / "dbos_queue_peer.py"]
            self.queue("dbos queue", callers, self.peer(command, 1, callers))
            for batch, name in PG_BOSS_BY.items() if self.node_modules else []:
                self.queue(name, callers, self.peer(["node", programs.HERE / "pgboss_peer.cjs"], 1, callers, batch))

    def queue(self, name: str, callers: int, printed: list[list[float]]) -> None:
        [[stored, carried]] = printed
        self.figures.add("operations", name, callers, stored_per_s=stored, carried_per_s=carried)

    def peer(self, command: list, processes: int, *more: int) -> list[list[float]]:
        """What each process of a peer prints."""
        where = f"{self.server.address('peers')}#{self.schema()}"
        commands = [[*command, where, str(self.seconds), *map(str, more)]] * processes
        environment = {**self.server.environment(), "NODE_PATH": str(self.node_modules)}
        outputs = programs.together(commands, environment, ready=True)
        self.clean()
        return [[float(line) for line in output.split()] for output in outputs]


def measure(server: Server, program: os.PathLike, figures: Figures, seconds: float, rounds: int, scale: int) -> None:
    comparison = Comparison(server, program, figures, seconds)
    comparison.prepare(scale)
    names = [*SETTINGS, "wal_sync_method", "server_version"]
    told = {name: server.sql("peers", f"SHOW {name}")[0] for name in names}
    figures.write(server=told, file_system=server.file_system, seconds=seconds, rounds=rounds, scale=scale)
    shown = ", ".join(f"{name}={told[name]}" for name in names[:-1])
    print(f"PostgreSQL {told['server_version']} on {server.file_system}, for everybody: {shown}.")
    print(f"Medians of {rounds} rounds of {seconds:g} s, in turn; peers at their best.\n", flush=True)
    for figures.round in range(rounds):
        comparison.round()
    print(actions(figures), processes(figures), hot(figures), operations(figures), sep="\n\n")
    if not comparison.node_modules:
        print("\npg-boss is left out: it needs node and npm.")


def actions(figures: Figures) -> str:
    """All of Onceseal's rows, and of each other system the one where it is at its best."""
    _, most = figures.best("actions", "onceseal", "per_s")
    rows = []
    for name in figures.systems("actions"):
        every = figures.clients("actions", name)
        for clients in every if name == "onceseal" else [figures.best("actions", name, "per_s")[0]]:
            pace, p50, p99, size = [
                figures.median("actions", name, clients, figure) for figure in ("per_s", "p50_ms", "p99_ms", "bytes")
            ]
            figured = [number(pace), number(p50, 1), number(p99, 1), number(size), times(most, pace)]
            rows.append([name, clients, *figured])
    headings = ["system", "clients", "actions/s", "p50 ms", "p99 ms", "bytes/action", "onceseal at its best is"]
    return table(headings, rows) + "\nAn action of pgbench is a transaction."


def processes(figures: Figures) -> str:
    rows = []
    for (processes, callers), alone in TOGETHER.items():
        clients = f"{processes} x {callers}"
        pace, p99, least = [
            figures.median("processes", "onceseal", clients, figure) for figure in ("per_s", "p99_ms", "least")
        ]
        ratio = times(pace, figures.median("actions", "onceseal", alone, "per_s"))
        rows.append([clients, number(pace), number(p99, 1), number(least, 2), ratio])
    headings = ["processes x callers", "actions/s", "worst p99 ms", "least share", "of one with as many"]
    return table(headings, rows)


def hot(figures: Figures) -> str:
    processes, callers = HOT
    clients = f"{processes} x {callers}"
    beside = figures.median("beside", "onceseal", clients, "per_s")
    rows = []
    for others, name in (("beside", "a key each"), ("hot", "one hot key")):
        pace, p99, answered = [
            figures.median(others, "onceseal", clients, figure) for figure in ("per_s", "p99_ms", "others_per_s")
        ]
        rows.append([name, number(pace), number(p99, 1), number(answered), times(pace, beside)])
    headings = [f"beside {clients} callers as many on", "actions/s", "worst p99 ms", "answered/s", "of a key each"]
    return table(headings, rows) + f"\nBeside one hot key at least {KEPT:.2f}x is wanted."


def operations(figures: Figures) -> str:
    columns = ("stored_per_s", "carried_per_s")
    ours = [figures.best("operations", "onceseal", column)[1] for column in columns]
    rows = []
    for name in figures.systems("operations"):
        row = [name]
        for column, our in zip(columns, ours):
            clients, pace = figures.best("operations", name, column)
            row += [f"{number(pace)} ({clients})", times(our, pace)]
        rows.append(row)
    headings = ["system", "stored/s (callers)", "onceseal is", "carried out/s (callers)", "onceseal is"]
    return table(headings, rows)
