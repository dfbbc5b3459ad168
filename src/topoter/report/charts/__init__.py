"""Charts as inline vector graphics (the map of points: a canvas), in the page's own colours."""

from topoter.report.charts.bars import Bars, bar_chart
from topoter.report.charts.heat_maps import heat_map
from topoter.report.charts.lines import Reference, Series, line_chart
from topoter.report.charts.scatter import scatter_map

__all__ = ["Bars", "Reference", "Series", "bar_chart", "heat_map", "line_chart", "scatter_map"]
