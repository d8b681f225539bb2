"""Models whose inputs and outputs are numpy arrays in memory that the driver has mapped too."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Optional

import numpy as np

from ._burst import Connection
from ._burst import Model as _Model
from .errors import Busy, Timeout

# How often is looked whether a run is over that nothing announces: one that its caller had waited for and given up.
_LOOK_AGAIN = 0.001


class Tensor(NamedTuple):
    """What an input or output is. Of a quantized one the real value is `(stored - zero_point) * scale`."""

    name: str
    dtype: np.dtype
    shape: "tuple[int, ...]"
    scale: float
    zero_point: int


class Model:
    """A model that is prepared in a driver, made by `Driver.load`.

    `inputs` and `outputs` lie in shared memory. Nothing is copied: what is written to an input is where the driver reads
    it, and an output is where the driver wrote it. That means:

    * Write inputs between runs, not during one.
    * The next run writes over the outputs: keep one with `.copy()`.
    * Outputs can only be read. They are the driver's to write, at any time: a driver that misbehaves may change them
      while they are looked at. Who checks a value and then relies on it copies first.
    * An array stays good as long as it is referred to, also when the model is gone or its driver died.

    A model may be used by several threads, which wait for each other; what is in the arrays is theirs to agree on.
    """

    def __init__(self, connection: Connection, file: str, device: str) -> None:
        self._native = _Model.load(connection, file, device)
        self._stale = False
        self._awaited = False
        self._described_inputs = self._native.inputs()
        self._described_outputs = self._native.outputs()
        self._inputs = _arrays(self._native.input_mapping(), self._described_inputs)
        self._outputs = _arrays(self._native.output_mapping(), self._described_outputs)

    @property
    def inputs(self) -> "list[np.ndarray]":
        """Arrays to write to. They are the same as long as the model lives."""
        return list(self._inputs)

    @property
    def outputs(self) -> "list[np.ndarray]":
        """Arrays to read from after a run. They are the same until `Driver.reconnect` had to connect again."""
        return list(self._outputs)

    @property
    def input_details(self) -> "list[Tensor]":
        """What the inputs are."""
        return [_tensor(one) for one in self._described_inputs]

    @property
    def output_details(self) -> "list[Tensor]":
        """What the outputs are."""
        return [_tensor(one) for one in self._described_outputs]

    @property
    def labels(self) -> "list[str]":
        """Labels of its classes that are packed into its file; none where there are none."""
        return self._native.labels()

    @property
    def driver_time(self) -> Optional[float]:
        """Seconds that the last run took in the driver."""
        return self._native.driver_time()

    @property
    def driver_pid(self) -> int:
        """The process in which the model runs."""
        return self._native.driver_pid()

    def run(self, timeout: Optional[float] = None) -> "list[np.ndarray]":
        """Runs on what was written to `inputs`; gives `outputs`. Other threads of Python go on meanwhile.

        The driver is told the time-out, in seconds, and gives up what nobody waits for any more. Ctrl-C ends the wait;
        the next run then begins when the one before is over.

        Raises `DriverDied` as soon as it is known, `Timeout`, `Failed`; `Busy` while `run_async` is awaited.
        """
        if self._awaited:
            raise Busy("run_async of this model is being awaited")
        self._native.run(timeout)
        return self._outputs.copy()

    async def run_async(self, timeout: Optional[float] = None) -> "list[np.ndarray]":
        """As `run`, for an event loop of asyncio, which goes on meanwhile. No thread waits for a run: the loop watches a
        descriptor that the model has. One run at a time; several models run at once.

        A task that is cancelled leaves its run to the driver; the next one begins when that is over.
        """
        if self._awaited:
            raise Busy("run_async of this model is being awaited already")
        self._awaited = True
        try:
            return await self._run_async(timeout)
        finally:
            self._awaited = False

    async def _run_async(self, timeout: Optional[float]) -> "list[np.ndarray]":
        loop = asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        descriptor = self._native.descriptor()
        while not self._native.start(timeout):
            if end is not None and loop.time() >= end:
                raise Timeout("no answer before the deadline")
            await asyncio.sleep(_LOOK_AGAIN)
        while not self._native.is_over():
            await _readable(loop, descriptor, end)
        return self._outputs.copy()

    def _renew(self, connection: Connection) -> None:
        if self._awaited:
            raise Busy("run_async of this model is being awaited")
        self._native.renew(connection)
        self._outputs = _arrays(self._native.output_mapping(), self._described_outputs)

    def __repr__(self) -> str:
        return f"<burst.Model {self._native.name()} in process {self.driver_pid}>"


async def _readable(loop: asyncio.AbstractEventLoop, descriptor: int, end: Optional[float]) -> None:
    """Returns once the descriptor can be read."""
    future: "asyncio.Future[None]" = loop.create_future()
    loop.add_reader(descriptor, _set, future)
    try:
        await asyncio.wait_for(future, None if end is None else max(0.0, end - loop.time()))
    except asyncio.TimeoutError:
        raise Timeout("no answer before the deadline") from None
    finally:
        loop.remove_reader(descriptor)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _tensor(described: tuple) -> Tensor:
    name, dtype, shape, scale, zero_point, _, _ = described
    return Tensor(name, np.dtype(dtype), tuple(shape), scale, zero_point)


def _arrays(mapping: object, described: "list[tuple]") -> "list[np.ndarray]":
    """Arrays in a mapping, which each of them keeps."""
    arrays = []
    for _, dtype, shape, _, _, offset, length in described:
        kind = np.dtype(dtype)
        flat = np.frombuffer(mapping, kind, length // kind.itemsize, offset)  # type: ignore[call-overload]
        arrays.append(flat.reshape(shape))
    return arrays
