"""Neural networks in a driver service, on numpy arrays that lie in shared memory.

    import burst

    with burst.start() as driver:                      # or burst.connect(), to a service that runs
        model = driver.load("mobilenet.tflite")
        model.inputs[0][...] = frame                   # written where the driver reads it
        scores, = model.run(timeout=1.0)               # read where the driver wrote it
        print(scores.argmax())

The model runs in another process. A driver that dies is `burst.DriverDied`; `driver.reconnect()` makes everything
again, and the program goes on.
"""

from .driver import Driver, connect, start
from .errors import (
    BadModel,
    Busy,
    DriverDied,
    Error,
    Failed,
    NoService,
    Refused,
    Timeout,
)
from .model import Model, Tensor
from .tasks import (
    AudioClassifier,
    Box,
    Class,
    Detection,
    Heard,
    ImageClassifier,
    ImageSegmenter,
    ImageUpscaler,
    ObjectDetector,
    RecurrentStream,
    Segmentation,
    Task,
)

__all__ = [
    "AudioClassifier",
    "BadModel",
    "Box",
    "Busy",
    "Class",
    "Detection",
    "Driver",
    "DriverDied",
    "Error",
    "Failed",
    "Heard",
    "ImageClassifier",
    "ImageSegmenter",
    "ImageUpscaler",
    "Model",
    "NoService",
    "ObjectDetector",
    "RecurrentStream",
    "Refused",
    "Segmentation",
    "Task",
    "Tensor",
    "Timeout",
    "connect",
    "start",
]
