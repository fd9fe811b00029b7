"""ctrlrun: complete actions per second. Arguments: directory, seconds, threads, [full]."""
import pathlib
import sys
import threading
import time

from ctrlrun import Action, Control, JSONLEventSink, Policy, Principal
from ctrlrun.state import SQLiteStateStore

POLICY = """
schema: ctrlrun.policy/v2
actions:
  stripe.refund:
    rules:
      - when: { amount_gte: 0, amount_lte: 50000 }
        decision: allow
      - decision: deny
"""


class Durable(SQLiteStateStore):
    """The same store with every commit on the disk before it returns."""

    def _connection(self):
        connection = super()._connection()
        if getattr(self._local, "durable", None) is not connection:
            connection.execute("PRAGMA synchronous=FULL")
            self._local.durable = connection
        return connection


def main() -> None:
    place, seconds, threads = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    store = (Durable if "full" in sys.argv else SQLiteStateStore)(place / "state.db")
    control = Control(Policy.from_yaml(POLICY), store, sinks=[JSONLEventSink(place)])
    counts = [0] * threads
    end = time.monotonic() + seconds

    def work(me: int) -> None:
        while time.monotonic() < end:
            key = f"{me}-{counts[me]}"
            arguments = {"payment_id": key, "amount": 2000, "note": "x" * 230}
            action = Action(name="stripe.refund", arguments=arguments, principal=Principal("bot", None))
            control.execute(action, lambda: {"ok": True}, f"refund:{key}")
            counts[me] += 1

    workers = [threading.Thread(target=work, args=(me,)) for me in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sum(counts) / seconds)


main()
