"""Training: the LightningModule of prediction autoencoders, those of policies, losses, metrics and callbacks."""

from physvision.core.registry import register_all
from physvision.trainers.callbacks import ParameterTracking as ParameterTracking, PredictionFigure as PredictionFigure
from physvision.trainers.flow import FlowData as FlowData, FlowTraining as FlowTraining
from physvision.trainers.gradients import EngineGradientShare as EngineGradientShare, engine_gradient as engine_gradient
from physvision.trainers.labeled_flow import LabeledFlowData as LabeledFlowData
from physvision.trainers.metrics import PredictionMetrics as PredictionMetrics
from physvision.trainers.module import PredictionTraining as PredictionTraining
from physvision.trainers.optimization import OptimizationSettings as OptimizationSettings
from physvision.trainers.pixels import (
    CurriculumSettings as CurriculumSettings,
    ObservationSettings as ObservationSettings,
    PendulumStabilizerSettings as PendulumStabilizerSettings,
    PendulumTraining as PendulumTraining,
)
from physvision.trainers.policies import PolicyTraining as PolicyTraining, StabilizerSettings as StabilizerSettings
from physvision.trainers.segmentation import SegmentationSupervision as SegmentationSupervision
from physvision.trainers.settings import ForecastSettings as ForecastSettings, SampleSettings as SampleSettings
from physvision.trainers.stages import Stages as Stages
from physvision.trainers.supervision import (
    FrameLossSettings as FrameLossSettings,
    StateLossSettings as StateLossSettings,
    Supervision as Supervision,
)

register_all(
    "physvision.trainers",
    (
        EngineGradientShare,
        FlowData,
        LabeledFlowData,
        ParameterTracking,
        PredictionFigure,
        SegmentationSupervision,
        Supervision,
    ),
)
