"""report.html: one page that holds everything and opens from the disk."""

from physvision.predict.report.page import write_page

__all__ = ["write_page"]
