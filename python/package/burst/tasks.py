"""From pictures and sound to answers.

Pictures are arrays of bytes of the shape `(height, width, 3)`: red, green, blue. Sound is an array of floats from -1 to
1, of one channel.

    classifier = burst.ImageClassifier(driver, "mobilenet.tflite", max_results=3)
    for seen in classifier.classify(picture):
        print(seen.label, seen.score)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional, Union

import numpy as np

from ._burst import Connection
from ._burst import Task as _Task

if TYPE_CHECKING:
    from .driver import Driver


class Class(NamedTuple):
    """A class with its score, as the model says it. The label is empty where there is none."""

    index: int
    label: str
    score: float


class Box(NamedTuple):
    """Edges as parts of the picture's width and height."""

    left: float
    top: float
    right: float
    bottom: float


class Detection(NamedTuple):
    """Something that was found, and where."""

    index: int
    label: str
    score: float
    box: Box


class Segmentation(NamedTuple):
    """The class of each pixel as the model gives it, and the classes there are, largest first: their score is their
    part of the picture."""

    mask: np.ndarray
    classes: "list[Class]"


class Heard(NamedTuple):
    """What was heard in a window of sound, which begins after so many seconds and lasts so many."""

    at: float
    span: float
    classes: "list[Class]"


class Task:
    """A model with what its file says of itself, in a driver.

    `max_results` is the most answers of one call, `score_threshold` the least score. Of `allowed` and `denied`, lists of
    labels, one may say which classes are answered. `labels` are those of the classes, from class 0 on: a list, or a file
    with one in each line; by default those in the model's file. `timeout` is how many seconds one execution may take.

    Raises `BadModel` for a model that is none for this task, `Refused`, `DriverDied`, `ValueError`.
    """

    _kind = ""

    def __init__(
        self,
        driver: Driver,
        file: "Union[str, os.PathLike[str]]",
        device: str = "cpu",
        *,
        max_results: Optional[int] = None,
        score_threshold: Optional[float] = None,
        allowed: Sequence[str] = (),
        denied: Sequence[str] = (),
        labels: "Union[Sequence[str], str, os.PathLike[str], None]" = None,
        timeout: Optional[float] = None,
    ) -> None:
        if not self._kind:
            raise TypeError("burst.Task is what the tasks have in common; make one of them")
        is_file = isinstance(labels, (str, os.PathLike))
        asked = {
            "max_results": max_results,
            "score_threshold": score_threshold,
            "allowed": list(allowed),
            "denied": list(denied),
            "labels": None if is_file or labels is None else list(labels),
            "label_file": os.fspath(labels) if is_file else None,
            "timeout": timeout,
        }
        self._native = _Task.load(driver._connection, self._kind, os.fspath(file), device, asked)
        self._stale = False
        driver._loaded.add(self)

    def _renew(self, connection: Connection) -> None:
        self._native.renew(connection)


class ImageClassifier(Task):
    """Says what a picture shows."""

    _kind = "classifier"

    def classify(self, picture: np.ndarray) -> "list[Class]":
        """The best classes of a picture, best first."""
        return [Class(*one) for one in self._native.classify(*_picture(picture))]


class ObjectDetector(Task):
    """Finds things in a picture."""

    _kind = "detector"

    def detect(self, picture: np.ndarray) -> "list[Detection]":
        """What is in a picture, best first."""
        found = self._native.detect(*_picture(picture))
        return [Detection(index, label, score, Box(*edges)) for index, label, score, edges in found]


class ImageSegmenter(Task):
    """Says of each pixel what it shows."""

    _kind = "segmenter"

    def segment(self, picture: np.ndarray) -> Segmentation:
        """The class of each pixel."""
        mask, rows, columns, shares = self._native.segment(*_picture(picture))
        return Segmentation(np.frombuffer(mask, "<u2").reshape(rows, columns), [Class(*one) for one in shares])


class ImageUpscaler(Task):
    """Makes a picture larger."""

    _kind = "upscaler"

    def upscale(self, picture: np.ndarray) -> np.ndarray:
        """The larger picture."""
        rgb, rows, columns = self._native.upscale(*_picture(picture))
        return np.frombuffer(rgb, np.uint8).reshape(rows, columns, 3)


class AudioClassifier(Task):
    """Says what is heard in sound."""

    _kind = "audio"

    def classify(self, samples: np.ndarray, rate: int) -> "list[Heard]":
        """What is heard in each window of sound of so many samples per second."""
        found = self._native.hear(_floats(samples), rate)
        return [Heard(at, span, [Class(*one) for one in classes]) for at, span, classes in found]


class RecurrentStream(Task):
    """Steps of a model with states, each of which begins where the one before ended. States stay in the driver; after
    `Driver.reconnect` they begin anew."""

    _kind = "recurrent"

    def step(self, values: np.ndarray) -> np.ndarray:
        """One step: the numbers of the model's first output. Missing values at the end are zeros."""
        return np.array(self._native.step(_floats(values)), np.float32)

    def reset(self) -> None:
        """Lets the next step begin as the first one did."""
        self._native.reset()


def _picture(picture: np.ndarray) -> "tuple[bytes, int, int]":
    picture = np.asarray(picture)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(
            f"a picture is an array of uint8 of the shape (height, width, 3), not of {picture.dtype} of {picture.shape}"
        )
    return picture.tobytes(), picture.shape[1], picture.shape[0]


def _floats(values: np.ndarray) -> bytes:
    values = np.asarray(values)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.floating):
        raise ValueError(f"samples are an array of floats of one dimension, not of {values.dtype} of {values.shape}")
    return values.astype("<f4").tobytes()
