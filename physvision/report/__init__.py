"""Reports: videos, pages, charts and tables, made of numbers and images without any network."""

from physvision.report.canvas import Canvas, Mark, Panel, difference_heatmap
from physvision.report.charts import Curve, path_chart, phase_chart, time_chart
from physvision.report.markup import (
    Markup,
    ParameterRow,
    code,
    embed_video,
    image_strip,
    parameter_table,
    side_by_side,
    stat_cards,
    table,
)
from physvision.report.output import OutputFolder
from physvision.report.page import Page
from physvision.report.palette import object_colors
from physvision.report.tables import StateTables
from physvision.report.units import Units, pixels_per_meter
from physvision.report.video_figure import VideoFigure, render_video

__all__ = [
    "Canvas",
    "Curve",
    "Mark",
    "Markup",
    "OutputFolder",
    "Page",
    "Panel",
    "ParameterRow",
    "StateTables",
    "Units",
    "VideoFigure",
    "code",
    "difference_heatmap",
    "embed_video",
    "image_strip",
    "object_colors",
    "parameter_table",
    "path_chart",
    "phase_chart",
    "pixels_per_meter",
    "render_video",
    "side_by_side",
    "stat_cards",
    "table",
    "time_chart",
]
