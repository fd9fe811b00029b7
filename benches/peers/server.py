"""A throwaway PostgreSQL server on a real disk, with the settings that it ships with but
for those named here, in the `C` locale. Only loopback reaches it, with a password."""
import glob
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

USER = "onceseal"
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
}
IN_MEMORY = {"tmpfs", "ramfs"}


def binaries(given: str | None) -> pathlib.Path:
    """The directory of PostgreSQL's programs: the newest that Debian's packages installed,
    or beside the `initdb` of the path."""
    on_path = shutil.which("initdb")
    versions = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    newest = max(versions, key=lambda path: float(path.split("/")[4]), default=on_path)
    found = pathlib.Path(given) if given else newest and pathlib.Path(newest).parent
    if not found or not (found / "initdb").exists():
        raise SystemExit("PostgreSQL's programs are not here: install it, or name their directory with --pg-bin")
    return found


def file_system(path: pathlib.Path) -> str:
    """The kind of file system that a directory is on, where the system says."""
    mounts = pathlib.Path("/proc/self/mounts")
    if not mounts.exists():
        return "unknown"
    fields = [line.split() for line in mounts.read_text().splitlines()]
    above = [(point, kind) for _, point, kind, *_ in fields if path.is_relative_to(point)]
    # Of those mounted at one place the last one is seen.
    return max(reversed(above), key=lambda mount: len(mount[0]))[1]


def account() -> dict:
    """Whom the server runs as: it refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise SystemExit("root cannot run a server, and there is no user `postgres` or `nobody`")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """The server, running as long as its `with` block; then it and its data are gone."""

    def __init__(self, within: str, programs: pathlib.Path) -> None:
        self.programs, self.port, self.password = programs, free_port(), secrets.token_hex(16)
        self.within = pathlib.Path(within).resolve()
        self.file_system = file_system(self.within)
        if self.file_system in IN_MEMORY:
            raise SystemExit(f"{within} is in memory, not on a disk: name another directory with --dir")
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "Server":
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="onceseal-peers-", dir=self.within))
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        runs = account()
        password = self.home / "password"
        password.write_text(self.password)
        if runs:
            for path in (self.home, password):
                os.chown(path, runs["user"], runs["group"])
        data = self.home / "data"
        made = [self.programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", password]
        made += ["--encoding", "UTF8", "--no-locale"]
        self.check(subprocess.run(made, capture_output=True, text=True, cwd=self.home, **runs), "initdb")
        password.unlink()
        command = [self.programs / "postgres", "-D", data, "-p", str(self.port)]
        own = {"listen_addresses": "127.0.0.1", "unix_socket_directories": self.home}
        for name, value in {**SETTINGS, **own}.items():
            command += ["-c", f"{name}={value}"]
        with open(self.home / "log", "w") as log:
            # Not in our group: it is ended by its pid, after those who use it.
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.home, start_new_session=True, **runs
            )
        self.wait()

    def wait(self) -> None:
        ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until = time.monotonic() + 60
        while subprocess.run(ready).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit("PostgreSQL does not start:\n" + (self.home / "log").read_text())
            time.sleep(0.1)

    def stop(self) -> None:
        # Whoever is impatient now would leave it running.
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        if self.process and self.process.poll() is None:
            for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                self.process.send_signal(how)
                try:
                    self.process.wait(60)
                    break
                except subprocess.TimeoutExpired:
                    continue
        shutil.rmtree(self.home)

    def environment(self) -> dict[str, str]:
        """What programs need to connect: an address has no password, which others could see."""
        host = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": USER, "PGSSLMODE": "disable"}
        return {**os.environ, **host, "PGPASSWORD": self.password}

    def address(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *arguments: str) -> str:
        """What one of PostgreSQL's programs prints."""
        command = [self.programs / program, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=self.within)
        return self.check(ran, program)

    def sql(self, database: str, statement: str) -> list[str]:
        """The rows of a statement."""
        asked = self.run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement)
        return asked.splitlines()

    @staticmethod
    def check(ran: subprocess.CompletedProcess, program: str) -> str:
        if ran.returncode != 0:
            raise SystemExit(f"{program} failed:\n{ran.stderr}")
        return ran.stdout
