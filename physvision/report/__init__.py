"""What people look at: films, pages, charts and tables. It is given numbers and pictures and runs no network."""

from physvision.report.canvas import Canvas, Mark, Panel, heat
from physvision.report.charts import Curve, path_chart, phase_chart, time_chart
from physvision.report.filming import Film, film
from physvision.report.markup import Markup, ParameterRow, beside, cards, code, embedded, parameter_table, strip, table
from physvision.report.output import OutputFolder
from physvision.report.page import Page
from physvision.report.palette import object_colors
from physvision.report.tables import StateTables
from physvision.report.units import Units, pixels_per_metre

__all__ = [
    "Canvas",
    "Curve",
    "Film",
    "Mark",
    "Markup",
    "OutputFolder",
    "Page",
    "Panel",
    "ParameterRow",
    "StateTables",
    "Units",
    "beside",
    "cards",
    "code",
    "embedded",
    "film",
    "heat",
    "object_colors",
    "parameter_table",
    "path_chart",
    "phase_chart",
    "pixels_per_metre",
    "strip",
    "table",
    "time_chart",
]
