"""Typed errors. Each says what was given, what was expected and what to do."""


class PhysvisionError(Exception):
    """Whatever physvision raises on purpose."""


class InputError(PhysvisionError, ValueError):
    """A value that cannot be used."""


class ShapeError(InputError):
    """A tensor of the wrong shape."""


class DtypeError(InputError, TypeError):
    """A tensor of the wrong dtype, or something that is not a tensor."""


class DeviceError(InputError):
    """Tensors that live on different devices."""


class ModelError(InputError):
    """A mechanical model that makes no sense: a cycle, a negative mass, an unknown body."""


class UnsupportedError(ModelError):
    """A model that makes sense, but holds what the engine cannot simulate."""


class DerivativeError(PhysvisionError, RuntimeError):
    """A derivative that a computation does not have."""


class FileError(PhysvisionError, OSError):
    """A file that is missing or cannot be read or written."""


class DataError(PhysvisionError):
    """A data set that is damaged, incomplete or of another recipe."""


class VideoError(PhysvisionError):
    """A video that cannot be read or written."""


class CheckpointError(PhysvisionError):
    """A checkpoint that is damaged, unsafe or of another architecture."""


class TrainingError(PhysvisionError):
    """A training that cannot go on."""


class MissingError(PhysvisionError, ImportError):
    """An optional package that is asked for and not installed."""
