"""Reports: pure functions from the store of results to tables, charts and pages. Nothing here trains or loads data.

tables.py      Table: on a page, in Markdown, in a terminal   experiments.py  from records to an experiment's tables
charts.py      Chart: lines, bars, heat maps as inline SVG    figures.py      from records to charts
maps.py        Map: embeddings on a plane                     standing.py     where we stand against the paper
page.py        Page: one offline file                         results.py      the report on a folder of results
"""
