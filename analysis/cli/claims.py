"""``python -m analysis claims DIRECTORY|URL``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from analysis.claims import check_claims, not_addressed
from analysis.cli.places import add_place, read
from analysis.reporting import wording
from analysis.reporting.json_text import claims_json
from study.records.printable import printable

HELP = "print the verdicts"
EXAMPLES = """\
  python -m analysis claims runs/quickstart          the verdicts and their reasons
  python -m analysis claims runs/quickstart --json   the verdicts for another program
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The experiment, and the format."""
    add_place(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Print every verdict, and the claims that the sweep says nothing about."""
    (sweep,) = read([options.place], options.experiment)
    found = check_claims(sweep)
    if options.json:
        print(claims_json(found))
        return
    lines = (wording.first_line(sweep), wording.banner(sweep), *wording.verdict_lines(found))
    for line in filter(None, lines):
        print(printable(line))
    for claim, lack in not_addressed(sweep):
        print(f"{claim.claim_id} not addressed: it would need {printable(lack)}")
