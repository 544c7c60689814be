"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.models.autoencoder import Prediction, PredictiveAutoencoder
from physvision.models.baselines import GraphEngine, MlpEngine
from physvision.models.billiards import TableCamera, learned_table, table
from physvision.models.checkpoints import build, load, save, shipped
from physvision.models.networks import MlpDecoder, MlpEncoder
from physvision.models.object_decoder import ObjectDecoder
from physvision.models.objects import ObjectEncoder
from physvision.models.vgg import VggDecoder, VggEncoder

__all__ = [
    "GraphEngine",
    "MlpDecoder",
    "MlpEncoder",
    "MlpEngine",
    "ObjectDecoder",
    "ObjectEncoder",
    "Prediction",
    "PredictiveAutoencoder",
    "TableCamera",
    "VggDecoder",
    "VggEncoder",
    "build",
    "learned_table",
    "load",
    "save",
    "shipped",
    "table",
]
