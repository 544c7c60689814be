"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.core.registry import register, register_all
from physvision.models.autoencoder import Forecast, PredictiveAutoencoder
from physvision.models.baselines import NetworkEngine
from physvision.models.billiards import TableCamera, learned_table, table
from physvision.models.camera_decoder import CameraDecoder, CameraLayers, LayerNetwork
from physvision.models.checkpoints import build, load, save, shipped
from physvision.models.flow_cache import CachedFlow
from physvision.models.forces import LearnedForce, PassiveForce
from physvision.models.interfaces import AppearanceCode, ClipContext, Decoder, Encoder, Observation
from physvision.models.networks import MlpDecoder, MlpEncoder
from physvision.models.object_decoder import ObjectDecoder
from physvision.models.objects import ObjectEncoder
from physvision.models.pendulum import PendulumCamera
from physvision.models.segmentation import InstanceSettings, SegmentationNetwork
from physvision.models.state_networks import StateGraph, StateNetwork, StatePerceptron
from physvision.models.table_encoder import TableEncoder
from physvision.models.tabletop import BallCamera, tabletop, tabletop_leaves
from physvision.models.trial_properties import TrackPropertyHead
from physvision.models.vgg import VggDecoder, VggEncoder

__all__ = [
    "AppearanceCode",
    "BallCamera",
    "CachedFlow",
    "CameraDecoder",
    "CameraLayers",
    "ClipContext",
    "Decoder",
    "Encoder",
    "Forecast",
    "InstanceSettings",
    "LayerNetwork",
    "LearnedForce",
    "MlpDecoder",
    "MlpEncoder",
    "NetworkEngine",
    "ObjectDecoder",
    "ObjectEncoder",
    "Observation",
    "PassiveForce",
    "PendulumCamera",
    "PredictiveAutoencoder",
    "SegmentationNetwork",
    "StateGraph",
    "StateNetwork",
    "StatePerceptron",
    "TableCamera",
    "TableEncoder",
    "TrackPropertyHead",
    "VggDecoder",
    "VggEncoder",
    "build",
    "learned_table",
    "load",
    "register",
    "save",
    "shipped",
    "table",
    "tabletop",
    "tabletop_leaves",
]

register_all(
    "physvision.models",
    (
        *(BallCamera, CachedFlow, CameraDecoder, InstanceSettings, LayerNetwork, LearnedForce, MlpDecoder, MlpEncoder),
        *(NetworkEngine, ObjectDecoder, ObjectEncoder, PassiveForce, PendulumCamera, PredictiveAutoencoder, StateGraph),
        *(StatePerceptron, TableCamera, TableEncoder, TrackPropertyHead, VggDecoder, VggEncoder),
        *(learned_table, table, tabletop),
    ),
)
