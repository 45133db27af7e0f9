"""A page as a browser would see it, and experiments that the tests of reporting share."""

from __future__ import annotations

from html.parser import HTMLParser

from analysis.reporting.report import Report
from tests.doubles import SYNTHETIC_ARMS, run_id

ALL_RUNS = [
    run_id(name, phase, rate, seed)
    for name, arm in SYNTHETIC_ARMS.items()
    for phase, rates, seeds in (
        ("search", arm.learning_rates, (0, 1, 2)),
        ("report", arm.learning_rates[2:3], (100, 101, 102)),
    )
    for rate in rates
    for seed in seeds
]
"""Every run of the synthetic experiment."""


class Page(HTMLParser):
    """Tags with their attributes, visible text, and everything that a browser would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        fetched = ("src", "srcset") if tag == "a" else ("src", "href", "srcset")
        self.loads += [value or "" for name, value in attrs if name in fetched]

    def handle_data(self, data: str) -> None:
        self.text += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def body(self) -> str:
        return self.text.split("</style>")[-1]


def page(report: Report) -> Page:
    return Page(report.index.read_text(encoding="utf-8"))
