"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.models.autoencoder import Prediction, PredictiveAutoencoder
from physvision.models.baselines import GraphEngine, Hybrid, MlpEngine
from physvision.models.checkpoints import build, load, save
from physvision.models.coordinates import Coordinates
from physvision.models.networks import MlpDecoder, MlpEncoder
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
    "PhysicsLayer",
    "Positive",
    "Prediction",
    "PredictiveAutoencoder",
    "Scene",
    "SceneObject",
    "SteppedEngine",
    "VggDecoder",
    "VggEncoder",
    "View",
    "build",
    "load",
    "save",
]
