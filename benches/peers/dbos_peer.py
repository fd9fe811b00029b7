"""DBOS: one workflow with one step per action, the workflow id is the key.
Arguments: a directory, or the address of a server with a schema; seconds, threads."""
import callers
from dbos import DBOS, SetWorkflowID
from dbos_system import launch

where, seconds, threads = callers.place()


@DBOS.step()
def remote(key: str, arguments: dict) -> dict:
    return {"ok": True}


@DBOS.workflow()
def refund(key: str, arguments: dict) -> dict:
    return remote(key, arguments)


def one(key: str) -> None:
    with SetWorkflowID(f"refund:{key}"):
        refund(key, callers.arguments(key))


launch(where, threads)
callers.run(seconds, threads, one)
DBOS.destroy()
