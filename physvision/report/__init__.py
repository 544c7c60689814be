"""Reports: videos, pages, charts and tables, made of numbers and images without any network."""

from physvision.report.canvas import (
    Canvas as Canvas,
    Mark as Mark,
    Panel as Panel,
    difference_heatmap as difference_heatmap,
)
from physvision.report.charts import (
    Curve as Curve,
    path_chart as path_chart,
    phase_chart as phase_chart,
    time_chart as time_chart,
)
from physvision.report.markup import (
    Markup as Markup,
    ParameterRow as ParameterRow,
    code as code,
    embed_video as embed_video,
    image_strip as image_strip,
    parameter_table as parameter_table,
    side_by_side as side_by_side,
    stat_cards as stat_cards,
    table as table,
)
from physvision.report.output import OutputFolder as OutputFolder
from physvision.report.page import Page as Page
from physvision.report.palette import object_colors as object_colors
from physvision.report.tables import StateTables as StateTables
from physvision.report.units import Units as Units, pixels_per_meter as pixels_per_meter
from physvision.report.video_figure import VideoFigure as VideoFigure, render_video as render_video
