"""The report on a folder of results: a page (`write_page`), and the same in Markdown (`markdown_summary`)."""

from topoter.report.results.page import write_page
from topoter.report.results.remarks import read_remarks
from topoter.report.results.stored import read_results
from topoter.report.results.summary import markdown_summary

__all__ = ["markdown_summary", "read_remarks", "read_results", "write_page"]
