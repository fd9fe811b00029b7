"""The programs that are measured: Onceseal's, and the peers', installed where they are
missing, each in a directory of its own under target/peers."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import venv
from typing import TextIO

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "target" / "peers"
HERE = pathlib.Path(__file__).resolve().parent


def home_of(packages: str) -> pathlib.Path:
    return SCRATCH / re.sub(r"[^a-z0-9.-]+", "-", packages)


def interpreter(packages: str) -> pathlib.Path:
    """Python with these packages from PyPI."""
    home = home_of(packages)
    if not (home / "ready").exists():
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *packages.split()], check=True)
        (home / "ready").touch()
    return home / "bin" / "python"


def node_modules(packages: str) -> pathlib.Path | None:
    """A directory with these packages from npm, if Node is here."""
    if not (shutil.which("node") and shutil.which("npm")):
        return None
    home = home_of(packages)
    if not (home / "ready").exists():
        home.mkdir(exist_ok=True)
        options = ["--silent", "--no-audit", "--no-fund", "--prefix", home]
        subprocess.run(["npm", "install", *options, *packages.split()], check=True)
        (home / "ready").touch()
    return home / "node_modules"


def built() -> pathlib.Path:
    """Onceseal's program of this source."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "onceseal-cli"], check=True, cwd=ROOT)
    return ROOT / "target" / "release" / "onceseal"


def together(commands: list[list], environment: dict[str, str] | None = None, ready: bool = False) -> list[str]:
    """What these print that run at once. Where they say `ready`, each is begun when the
    one before has said so, and then all are let go. None outlives this."""
    running: list[tuple[subprocess.Popen, TextIO]] = []
    try:
        for command in commands:
            errors = tempfile.TemporaryFile("w+")
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
            # A group of its own, with what it starts itself.
            process = subprocess.Popen(command, cwd=SCRATCH, env=environment, start_new_session=True, **pipes)
            running.append((process, errors))
            if ready and process.stdout.readline() != "ready\n":
                raise failed(process, errors)
        for process, _ in running if ready else []:
            # Of one that has ended its status says so.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write("go\n")
                process.stdin.flush()
        outputs = []
        for process, errors in running:
            outputs.append(process.stdout.read())
            if process.wait() != 0:
                raise failed(process, errors)
        return outputs
    finally:
        for process, errors in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for file in (process.stdin, process.stdout, errors):
                with contextlib.suppress(BrokenPipeError):
                    file.close()


def failed(process: subprocess.Popen, errors: TextIO) -> SystemExit:
    ended = process.wait()
    errors.seek(0)
    command = " ".join(str(word) for word in process.args)
    return SystemExit(f"{command}\nended with {ended}:\n{errors.read()[-4000:]}")


class Onceseal:
    """Onceseal's program; the environment says what it needs to reach a server."""

    def __init__(self, program: pathlib.Path, environment: dict[str, str] | None = None) -> None:
        self.program, self.environment = program.resolve(), environment

    def bench(self, seconds: float, *more: str) -> dict:
        """What `bench` tells, on the disk that the peers use."""
        with tempfile.TemporaryDirectory(dir=SCRATCH) as place:
            command = [self.program, "--json", "bench", "--seconds", str(seconds), "--dir", place, *more]
            return json.loads(together([command], self.environment)[0])
