"""What goes wrong, each a class to catch. Every one says in a sentence what and where."""


class Error(Exception):
    """Whatever goes wrong here."""


class NoService(Error, ConnectionError):
    """Nobody listens, or does not let this user in; or a driver of our own could not be started."""


class BadModel(Error, ValueError):
    """The file cannot be read, is no model that can be imported, or none for this task."""


class Refused(Error):
    """The service does not have the device, or does not take the model."""


class DriverDied(Error, ConnectionError):
    """The driver's process is gone, and what was under way is lost. `Driver.reconnect` makes everything again."""


class Timeout(Error, TimeoutError):
    """There was no answer in time."""


class Failed(Error):
    """The execution failed."""


class Busy(Error):
    """Somebody awaits this model: one run at a time."""
