"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.core.registry import register, register_all
from physvision.models.autoencoder import Forecast, PredictiveAutoencoder
from physvision.models.baselines import NetworkEngine
from physvision.models.billiards import TableCamera, learned_table, table
from physvision.models.checkpoints import build, load, save, shipped
from physvision.models.forces import LearnedForce, PassiveForce
from physvision.models.interfaces import Decoder, Encoder, Observation
from physvision.models.networks import MlpDecoder, MlpEncoder
from physvision.models.object_decoder import ObjectDecoder
from physvision.models.objects import ObjectEncoder
from physvision.models.state_networks import StateGraph, StateNetwork, StatePerceptron
from physvision.models.vgg import VggDecoder, VggEncoder

__all__ = [
    "Decoder",
    "Encoder",
    "Forecast",
    "LearnedForce",
    "MlpDecoder",
    "MlpEncoder",
    "NetworkEngine",
    "ObjectDecoder",
    "ObjectEncoder",
    "Observation",
    "PassiveForce",
    "PredictiveAutoencoder",
    "StateGraph",
    "StateNetwork",
    "StatePerceptron",
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
        *(LearnedForce, MlpDecoder, MlpEncoder, NetworkEngine, ObjectDecoder, ObjectEncoder, PassiveForce),
        *(
            PredictiveAutoencoder,
            StateGraph,
            StatePerceptron,
            TableCamera,
            VggDecoder,
            VggEncoder,
            learned_table,
            table,
        ),
    ),
)
