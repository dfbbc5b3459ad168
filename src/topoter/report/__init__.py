"""Reports: one HTML file with tables and charts that opens anywhere, offline.

page = Page("Title")  ->  Section("Part")  ->  .add(table or chart)  ->  page.write("report.html")
"""

from topoter.report.charts import Bars, Reference, Series, bar_chart, heat_map, line_chart, scatter_map
from topoter.report.demo import write_demo_report
from topoter.report.embedding_map import project_2d
from topoter.report.markup import Html, code_block, heading, paragraph, side_by_side
from topoter.report.page import Page, Section
from topoter.report.tables import Cell, Mark, Table, compare, facts, mean_and_deviation

__all__ = [
    "Bars",
    "Cell",
    "Html",
    "Mark",
    "Page",
    "Reference",
    "Section",
    "Series",
    "Table",
    "bar_chart",
    "code_block",
    "compare",
    "facts",
    "heading",
    "heat_map",
    "line_chart",
    "mean_and_deviation",
    "paragraph",
    "project_2d",
    "scatter_map",
    "side_by_side",
    "write_demo_report",
]
