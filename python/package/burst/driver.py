"""Connections to a driver service, or to a driver process of our own."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Sequence
from typing import Optional, Protocol, TypeVar, Union

from ._burst import Connection
from .errors import NoService
from .model import Model

Path = Union[str, "os.PathLike[str]"]


class _Loaded(Protocol):
    """What a driver makes again after its process was gone: models and tasks."""

    _stale: bool

    def _renew(self, connection: Connection) -> None: ...


T = TypeVar("T", bound=_Loaded)


class Driver:
    """A driver of neural networks in another process, made by `connect` or `start`.

    As a context manager it is closed at the end. What was loaded goes on as long as it is referred to.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loaded: "weakref.WeakSet[_Loaded]" = weakref.WeakSet()

    def load(self, file: Path, device: str = "cpu") -> Model:
        """Prepares the model of a `.tflite` file, with memory for its inputs and outputs.

        Raises `BadModel`, `Refused`, `DriverDied`.
        """
        model = Model(self._connection, os.fspath(file), device)
        self._loaded.add(model)
        return model

    def load_task(self, kind: "Callable[..., T]", file: Path, device: str = "cpu", **options: object) -> T:
        """As `kind(driver, file, device, **options)`, such as `ImageClassifier(driver, file, max_results=3)`."""
        return kind(self, file, device, **options)

    def reconnect(self, timeout: Optional[float] = 30.0) -> bool:
        """Makes everything again where the driver's process is gone; whether that had to be done.

        A driver of our own is started again; a service is waited for until somebody has started it again. All models
        and tasks are prepared again. Inputs keep their arrays and what was written to them. Outputs have new arrays
        (`Model.outputs`): those from before stay as they were.

        Raises `NoService`, or `Timeout`, after so many seconds; `None` waits without end.
        """
        renewed = self._connection.reconnect(timeout)
        # Also what an earlier attempt, which failed over it, had left out.
        for loaded in list(self._loaded):
            if renewed or loaded._stale:
                loaded._stale = True
                loaded._renew(self._connection)
                loaded._stale = False
        return renewed

    @property
    def devices(self) -> "list[str]":
        """Names of the devices there are."""
        return self._connection.devices()

    @property
    def pid(self) -> int:
        """The process in which models run."""
        return self._connection.pid()

    @property
    def is_alive(self) -> bool:
        """Whether that process is there, as far as is known."""
        return self._connection.is_alive()

    def close(self) -> None:
        """Hangs up, once nothing that was loaded is in use. A driver of our own then ends."""
        self._connection.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(path: Optional[Path] = None, *, timeout: Optional[float] = 10.0) -> Driver:
    """Connects to the service that listens at a Unix socket: by default `$BURST_SOCKET`, else `burst.sock` in
    `$XDG_RUNTIME_DIR`.

    Raises `NoService`; `Timeout` after so many seconds.
    """
    return Driver(Connection.connect(None if path is None else os.fspath(path), timeout))


def start(
    program: Optional[Path] = None,
    *,
    devices: Sequence[str] = ("cpu",),
    threads: int = 1,
    timeout: Optional[float] = 30.0,
) -> Driver:
    """Starts a driver process for this program alone, which ends with it.

    `program` is the command `burst`: by default what `PATH` has by that name. So many threads compute.

    Raises `NoService` where there is no such program, or it does not start; `Timeout` after so many seconds.
    """
    found = shutil.which("burst" if program is None else os.fspath(program))
    if found is None:
        wanted = "the program `burst` is not in PATH" if program is None else f"{os.fspath(program)}: no such program"
        raise NoService(f"{wanted}; install it, or say where it is: burst.start(program=...)")
    return Driver(Connection.start(os.path.abspath(found), ",".join(devices), threads, timeout))
