"""Typed errors, whose messages say what was given, what was expected and what to do."""


class PhysvisionError(Exception):
    """Base class of all errors that physvision raises."""


class InputError(PhysvisionError, ValueError):
    """Argument with an invalid value."""


class ShapeError(InputError):
    """Tensor with a wrong shape."""


class DtypeError(InputError, TypeError):
    """Tensor with a wrong dtype, or an object that is not a tensor."""


class DeviceError(InputError):
    """Tensors on different devices."""


class ModelError(InputError):
    """Invalid mechanical model: a cycle, a negative mass, an unknown body."""


class UnsupportedError(ModelError):
    """Valid model with an element that the engine cannot simulate."""


class DerivativeError(PhysvisionError, RuntimeError):
    """Derivative that does not exist or is not implemented."""


class FileError(PhysvisionError, OSError):
    """Missing file, or one that cannot be read or written."""


class DataError(PhysvisionError):
    """Damaged or incomplete data set, or one of another recipe."""


class VideoError(PhysvisionError):
    """Video that cannot be decoded or encoded."""


class TruncatedVideoError(VideoError):
    """Video that is damaged or cut off after frames that could be read."""


class CheckpointError(PhysvisionError):
    """Damaged or unsafe checkpoint, or one of another architecture."""


class TrainingError(PhysvisionError):
    """Training run that cannot continue."""


class MissingError(PhysvisionError, ImportError):
    """Optional package that is needed and not installed."""
