"""DBOS: workflows of one step, enqueued by threads, then run from the queue by a
process that does nothing else. Arguments: a directory, or the address of a server with
a schema; seconds, threads. Prints enqueued/s and carried out/s."""
import subprocess
import sys
import threading
import time

import callers
from dbos import DBOS, SetWorkflowID
from dbos_system import launch

AT_ONCE = 64

where, seconds, threads = callers.place()
works = "work" in sys.argv
carried = 0
lock = threading.Lock()


@DBOS.step()
def remote(key: str, arguments: dict) -> dict:
    return {"ok": True}


@DBOS.workflow()
def refund(key: str, arguments: dict) -> dict:
    global carried
    result = remote(key, arguments)
    with lock:
        carried += 1
    return result


launch(where, AT_ONCE if works else threads, ("refunds",) if works else ())
# Looked at far more often than it ships with, once a second, which would be all
# that is measured.
queue = DBOS.register_queue("refunds", polling_interval_sec=0.01, worker_concurrency=AT_ONCE)
if works:
    time.sleep(seconds)
    print(carried / seconds, flush=True)
    DBOS.destroy()
    sys.exit()


def enqueue(key: str) -> None:
    with SetWorkflowID(f"refund:{key}"):
        queue.enqueue(refund, key, callers.arguments(key))


callers.run(seconds, threads, enqueue)
DBOS.destroy()
subprocess.run([sys.executable, *sys.argv, "work"], check=True)
