"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.models.autoencoder import Prediction, PredictiveAutoencoder
from physvision.models.baselines import GraphEngine, Hybrid, MlpEngine
from physvision.models.billiards import TableCamera, learned_table, table
from physvision.models.checkpoints import build, load, save, shipped
from physvision.models.coordinates import Coordinates
from physvision.models.networks import MlpDecoder, MlpEncoder
from physvision.models.object_decoder import ObjectDecoder
from physvision.models.objects import ObjectEncoder
from physvision.models.physics_layer import PhysicsLayer, Positive
from physvision.models.scene import Scene, SceneObject, View
from physvision.models.stepped import LearnedEngine, SteppedEngine
from physvision.models.vgg import VggDecoder, VggEncoder

__all__ = [
    "Coordinates",
    "GraphEngine",
    "Hybrid",
    "LearnedEngine",
    "MlpDecoder",
    "MlpEncoder",
    "MlpEngine",
    "ObjectDecoder",
    "ObjectEncoder",
    "PhysicsLayer",
    "Positive",
    "Prediction",
    "PredictiveAutoencoder",
    "Scene",
    "SceneObject",
    "SteppedEngine",
    "TableCamera",
    "VggDecoder",
    "VggEncoder",
    "View",
    "build",
    "learned_table",
    "load",
    "save",
    "shipped",
    "table",
]
