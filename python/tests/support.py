"""What the tests have in common: the model of the repository with its golden outputs, services, waits."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import burst

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "shapes.tflite"
# The command that serves; `python/test` says which.
PROGRAM = os.environ.get("BURST_PROGRAM", "burst")
# Turns a hang into a failure.
HANG = 60.0
SHARED = pathlib.Path(os.environ.get("BURST_SHARED", ROOT.parent / "shared"))

# A shell that starts this in the background has told it to ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def golden():
    """Inputs of the model, the outputs that they have, and the classes that those name."""
    about = json.loads((ROOT / "models" / "shapes.golden.json").read_text())
    data = (ROOT / "models" / "shapes.golden.bin").read_bytes()

    def part(which):
        place = about[which]
        count = int(np.prod(place["shape"]))
        return np.frombuffer(data, place["type"], count, place["offset"]).reshape(place["shape"])

    inputs, outputs = part("inputs"), part("outputs")
    return inputs, outputs, outputs.argmax(axis=1).tolist()


class Driven(unittest.TestCase):
    """Tests that have a driver of their own, one for each class."""

    @classmethod
    def setUpClass(cls):
        cls.driver = burst.start(PROGRAM)
        cls.addClassCleanup(cls.driver.close)


class Service:
    """A service at a socket, in a process that somebody else has started."""

    def __init__(self, path):
        self.path = path
        self.process = None
        self.start()

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        command = [PROGRAM, "serve", "--socket", self.path]
        quiet = {**os.environ, "BURST_LOG": "warn"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def service():
    with tempfile.TemporaryDirectory() as folder:
        it = Service(os.path.join(folder, "burst.sock"))
        try:
            yield it
        finally:
            it.kill()


def until(holds):
    """Waits for what has to come."""
    end = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.001)


@contextlib.contextmanager
def stopped(pid):
    """A process that does nothing: what is asked of it is under way until the end."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(_is_stopped(pid, thread) for thread in os.listdir(f"/proc/{pid}/task")))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _is_stopped(pid, thread):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        stat = pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] in "TtZX"
    return True


def once_main_is_in(function, then):
    """A thread that does something once the main thread is in a function of this name. That it runs at all while the
    main thread waits in native code shows that others go on."""
    main = threading.main_thread().ident

    def look():
        until(lambda: sys._current_frames()[main].f_code.co_name == function)
        then()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def threads():
    """How many threads this process has."""
    return len(os.listdir("/proc/self/task"))
