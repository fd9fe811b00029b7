"""DBOS: workflows of one step, enqueued by threads, then run from the queue by a
process that does nothing else. Arguments: directory, seconds, threads. Prints
enqueued/s and carried out/s."""
import pathlib
import subprocess
import sys
import threading
import time

from dbos import DBOS, SetWorkflowID

place, seconds, threads = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
works = "work" in sys.argv
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{place / 'dbos.sqlite'}",
        "log_level": "ERROR",
        "run_admin_server": False,
    }
)
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


DBOS.listen_queues(["refunds"] if works else [])
DBOS.launch()
# Looked at far more often than it ships with, once a second, which would be all
# that is measured.
queue = DBOS.register_queue("refunds", polling_interval_sec=0.01, worker_concurrency=64)
if works:
    time.sleep(seconds)
    print(carried / seconds, flush=True)
    DBOS.destroy()
    sys.exit()

counts = [0] * threads
end = time.monotonic() + seconds


def enqueue(me: int) -> None:
    while time.monotonic() < end:
        key = f"{me}-{counts[me]}"
        with SetWorkflowID(f"refund:{key}"):
            queue.enqueue(refund, key, {"payment_id": key, "amount": 2000, "note": "x" * 230})
        counts[me] += 1


callers = [threading.Thread(target=enqueue, args=(me,)) for me in range(threads)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
print(sum(counts) / seconds, flush=True)
DBOS.destroy()
subprocess.run([*[sys.executable, __file__], *sys.argv[1:], "work"], check=True)
