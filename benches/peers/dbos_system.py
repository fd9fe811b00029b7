"""Where DBOS keeps what it knows."""
import os
import pathlib

import callers
from dbos import DBOS


def launch(where: str, threads: int, queues: tuple[str, ...] | None = None) -> None:
    """Launches DBOS on this directory or server, with connections for so many threads.
    Where queues are given, it carries out these and no others."""
    config = {
        "name": "bench",
        "log_level": "ERROR",
        "run_admin_server": False,
        # Else each process takes the others' workflows for its own to recover.
        "executor_id": str(os.getpid()),
    }
    if (server := callers.on_server(where)) is None:
        config["system_database_url"] = f"sqlite:///{pathlib.Path(where) / 'dbos.sqlite'}"
    else:
        config["system_database_url"], config["dbos_system_schema"] = server
        config["sys_db_pool_size"] = max(20, 2 * threads)
    DBOS(config=config)
    if queues is not None:
        DBOS.listen_queues(queues)
    DBOS.launch()
