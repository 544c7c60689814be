"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.core.registry import register, register_all
from physvision.models.autoencoder import Forecast, PredictiveAutoencoder
from physvision.models.baselines import GraphEngine, MlpEngine
from physvision.models.billiards import TableCamera, learned_table, table
from physvision.models.checkpoints import build, load, save, shipped
from physvision.models.networks import MlpDecoder, MlpEncoder
from physvision.models.object_decoder import ObjectDecoder
from physvision.models.objects import ObjectEncoder
from physvision.models.parts import Decoder, Encoder, Observation
from physvision.models.vgg import VggDecoder, VggEncoder

__all__ = [
    "Decoder",
    "Encoder",
    "Forecast",
    "GraphEngine",
    "MlpDecoder",
    "MlpEncoder",
    "MlpEngine",
    "ObjectDecoder",
    "ObjectEncoder",
    "Observation",
    "PredictiveAutoencoder",
    "TableCamera",
    "VggDecoder",
    "VggEncoder",
    "build",
    "learned_table",
    "load",
    "register",
    "save",
    "shipped",
    "table",
]

register_all(
    "physvision.models",
    (
        *(GraphEngine, MlpDecoder, MlpEncoder, MlpEngine, ObjectDecoder, ObjectEncoder, PredictiveAutoencoder),
        *(TableCamera, VggDecoder, VggEncoder, learned_table, table),
    ),
)
