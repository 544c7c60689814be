"""Tables of identified parameters with their uncertainty budget, rounded by their error: CSV, XLSX and LaTeX."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from physvision.identification.formatting import round_like, round_to_interval
from physvision.identification.parameters import Parameter
from physvision.identification.result import Identification
from physvision.report.spreadsheet import Cell, write_csv, write_latex, write_xlsx

BUDGET_SOURCES = {"known_values": "scale, known values", "tracking": "tracking", "model": "model"}
RESULT_HEAD = (
    "parameter", "value", "low 68 %", "high 68 %", "low 95 %", "high 95 %", "unit",
    *(f"uncertainty: {source}" for source in BUDGET_SOURCES.values()), "note",
)  # fmt: skip


def write_result_tables(result: Identification, folder: Path, decimal: str = ".") -> list[Path]:
    """Write parameters.csv, parameters.xlsx and parameters.tex, and return their paths.

    Args:
        result: Identification to write.
        folder: Existing folder.
        decimal: Decimal separator of the CSV, a point or a comma; with a comma, columns are separated by semicolons.
    """
    rows = [parameter_row(name, parameter) for name, parameter in result.parameters.items()]
    paths = [folder / f"parameters.{suffix}" for suffix in ("csv", "xlsx", "tex")]
    write_csv(paths[0], RESULT_HEAD, rows, decimal)
    write_xlsx(paths[1], RESULT_HEAD, rows)
    write_latex(paths[2], RESULT_HEAD, rows)
    return paths


def parameter_row(name: str, parameter: Parameter) -> list[Cell]:
    """Return the cells of a parameter: its name, value, intervals, unit, uncertainty budget and a note.

    The budget has standard uncertainties from known values such as the scale, from the tracking (white noise of the
    positions), and from the model (autocorrelated errors, and priors such as those of the camera), with two digits.
    """
    label = name.replace("_", " ")
    if parameter.value is None or parameter.interval_95 is None or parameter.interval_68 is None:
        return [label, *[""] * 5, parameter.unit, *[""] * len(BUDGET_SOURCES), parameter.reason]
    low, high = parameter.interval_95
    value, *bounds_95 = round_to_interval(parameter.value, low, high)
    bounds_68 = [round_like(bound, value) for bound in parameter.interval_68]
    budget = [Decimal(f"{parameter.budget.get(source, 0.0):.2g}") for source in BUDGET_SOURCES]
    return [label, Decimal(value), *bounds_68, *map(Decimal, bounds_95), parameter.unit, *budget, parameter.meaning]
