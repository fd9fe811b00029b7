"""DBOS: one workflow with one step per action, the workflow id is the key.
Arguments: directory, seconds, threads."""
import pathlib
import sys
import threading
import time

from dbos import DBOS, SetWorkflowID

place, seconds, threads = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{place / 'dbos.sqlite'}",
        "log_level": "ERROR",
        "run_admin_server": False,
    }
)


@DBOS.step()
def remote(key: str, arguments: dict) -> dict:
    return {"ok": True}


@DBOS.workflow()
def refund(key: str, arguments: dict) -> dict:
    return remote(key, arguments)


DBOS.launch()
counts = [0] * threads
end = time.monotonic() + seconds


def work(me: int) -> None:
    while time.monotonic() < end:
        key = f"{me}-{counts[me]}"
        with SetWorkflowID(f"refund:{key}"):
            refund(key, {"payment_id": key, "amount": 2000, "note": "x" * 230})
        counts[me] += 1


workers = [threading.Thread(target=work, args=(me,)) for me in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(sum(counts) / seconds)
DBOS.destroy()
