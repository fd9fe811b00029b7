"""ctrlrun: complete actions per second. Arguments: a directory, or the address of a
server with a schema; seconds, threads, [full]."""
import pathlib
import sys

import callers
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


def opened(where: str) -> Control:
    policy = Policy.from_yaml(POLICY)
    if (server := callers.on_server(where)) is None:
        place = pathlib.Path(where)
        store = (Durable if "full" in sys.argv else SQLiteStateStore)(place / "state.db")
        return Control(policy, store, sinks=[JSONLEventSink(place)])
    from ctrlrun.postgres import PostgresStateStore

    address, schema = server
    PostgresStateStore.create_schema(address, schema)
    return Control(policy, PostgresStateStore(address, schema=schema), sinks=[])


def main() -> None:
    where, seconds, threads = callers.place()
    control = opened(where)

    def refund(key: str) -> None:
        action = Action(
            name="stripe.refund", arguments=callers.arguments(key), principal=Principal("bot", None)
        )
        control.execute(action, lambda: {"ok": True}, f"refund:{key}")

    callers.run(seconds, threads, refund)


main()
