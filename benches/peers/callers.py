"""What the peers' scripts share: callers that act as fast as they are answered.

A script says `ready`, waits for a line, so that several of them begin at once, and
then prints each of its figures on a line.
"""
import pathlib
import sys
import threading
import time
from collections.abc import Callable


def place() -> tuple[str, float, int]:
    """The arguments of a script: where to store, seconds, threads."""
    return sys.argv[1], float(sys.argv[2]), int(sys.argv[3])


def on_server(where: str) -> tuple[str, str] | None:
    """The address and the schema, where it is `postgresql://…#schema` and no directory."""
    if not where.startswith("postgresql://"):
        return None
    address, _, schema = where.partition("#")
    return address, schema


def arguments(key: str) -> dict:
    """About 300 bytes, those of `onceseal bench`."""
    return {"payment_id": key, "amount": 2000, "note": "x" * 230}


def run(seconds: float, threads: int, one: Callable[[str], None]) -> None:
    """Does one thing again and again on each thread, each time with another key, and
    prints how often in a second. Each has done one before: nobody pays for connecting.
    """
    name = pathlib.Path(sys.argv[0]).stem
    process = time.time_ns()
    counts, failures = [0] * threads, []
    begun = threading.Barrier(threads + 1)
    end = 0.0

    def work(me: int) -> None:
        try:
            one(f"{name}-{process}-{me}-first")
            begun.wait()
            begun.wait()
            while time.monotonic() < end:
                one(f"{name}-{process}-{me}-{counts[me]}")
                counts[me] += 1
        except BaseException as failure:
            failures.append(failure)
            begun.abort()

    workers = [threading.Thread(target=work, args=(me,)) for me in range(threads)]
    for worker in workers:
        worker.start()
    try:
        begun.wait()
        print("ready", flush=True)
        sys.stdin.readline()
        start = time.monotonic()
        end = start + seconds
        begun.wait()
    except threading.BrokenBarrierError:
        pass  # Whoever broke it says why below.
    for worker in workers:
        worker.join()
    told = [failure for failure in failures if not isinstance(failure, threading.BrokenBarrierError)]
    if told:
        raise told[0]
    print(sum(counts) / (time.monotonic() - start), flush=True)
