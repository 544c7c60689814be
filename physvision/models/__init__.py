"""Networks around an engine: encoders, decoders, the physics layer, learned baselines, and models as files."""

from physvision.core.registry import register as register, register_all
from physvision.models.autoencoder import Forecast as Forecast, PredictiveAutoencoder as PredictiveAutoencoder
from physvision.models.billiards import TableCamera as TableCamera, learned_table as learned_table, table as table
from physvision.models.camera_decoder import (
    CameraDecoder as CameraDecoder,
    CameraLayers as CameraLayers,
    LayerNetwork as LayerNetwork,
)
from physvision.models.checkpoints import build as build, load as load, save as save, shipped as shipped
from physvision.models.flow_cache import CachedFlow as CachedFlow
from physvision.models.forces import LearnedForce as LearnedForce, PassiveForce as PassiveForce
from physvision.models.interfaces import (
    AppearanceCode as AppearanceCode,
    ClipContext as ClipContext,
    Decoder as Decoder,
    Encoder as Encoder,
    Observation as Observation,
)
from physvision.models.link_decoder import LinkDecoder as LinkDecoder
from physvision.models.link_encoder import LinkEncoder as LinkEncoder
from physvision.models.links import LinkSettings as LinkSettings
from physvision.models.networks import MlpDecoder as MlpDecoder, MlpEncoder as MlpEncoder
from physvision.models.object_decoder import ObjectDecoder as ObjectDecoder
from physvision.models.pendulum import (
    LinkCamera as LinkCamera,
    PendulumCamera as PendulumCamera,
    swing as swing,
    swing_leaves as swing_leaves,
)
from physvision.models.photometric import PhotometricSettings as PhotometricSettings
from physvision.models.scene_camera import SceneCamera as SceneCamera
from physvision.models.segmentation import (
    InstanceSettings as InstanceSettings,
    LinkSegmentation as LinkSegmentation,
    SegmentationNetwork as SegmentationNetwork,
)
from physvision.models.state_networks import (
    NetworkEngine as NetworkEngine,
    StateGraph as StateGraph,
    StateNetwork as StateNetwork,
    StatePerceptron as StatePerceptron,
)
from physvision.models.table_crops import BallCropSettings as BallCropSettings
from physvision.models.table_encoder import TableEncoder as TableEncoder
from physvision.models.table_motion import TableMotion as TableMotion, TableMotionSettings as TableMotionSettings
from physvision.models.tabletop import (
    BallCamera as BallCamera,
    tabletop as tabletop,
    tabletop_leaves as tabletop_leaves,
)
from physvision.models.trial_properties import TrackPropertyHead as TrackPropertyHead
from physvision.models.vgg import VggDecoder as VggDecoder, VggEncoder as VggEncoder

register_all(
    "physvision.models",
    (
        *(BallCamera, CachedFlow, CameraDecoder, InstanceSettings, LayerNetwork, LearnedForce, MlpDecoder, MlpEncoder),
        *(NetworkEngine, ObjectDecoder, PassiveForce, PendulumCamera, PredictiveAutoencoder, StateGraph),
        *(StatePerceptron, TableCamera, TableEncoder, TrackPropertyHead, VggDecoder, VggEncoder, PhotometricSettings),
        *(LinkCamera, LinkDecoder, LinkEncoder, LinkSettings, SceneCamera, TableMotion, TableMotionSettings),
        *(learned_table, swing, table, tabletop, BallCropSettings),
    ),
)
