"""Everything that a report says, computed once; the page, the Markdown and the JSON show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.claims import Claim, check_claims, claims, not_addressed
from analysis.claims.verdict import Verdict
from analysis.estimates.search import SearchSummary, search_summary
from analysis.reading.arms import arms
from analysis.reading.load import samples
from analysis.reading.sweep import Sweep
from analysis.reporting.cells import CellRow, Repeat, StatusRow, cell_rows, repeats, status_rows
from analysis.reporting.glossary import meaning
from analysis.reporting.headlines import Answer, answers
from analysis.reporting.methods import methods
from analysis.reporting.opening import Opening, opening
from analysis.reporting.provenance import provenance_lines
from analysis.reporting.ranks import RankRatio, rank_ratios
from analysis.reporting.seeds import seed_needs
from analysis.reporting.summary import summary
from analysis.reporting.tables import ArmRow, arm_rows
from analysis.reporting.tasks import OverTasks, over_tasks
from analysis.reporting.weights import WeightRow, weight_rows
from analysis.reporting.wording import banner, first_line

SAMPLES_PER_ARM = 2


@dataclass(frozen=True)
class Sample:
    """A stored completion."""

    arm: str
    run_id: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """One sweep as a report shows it."""

    sweep: Sweep
    search: SearchSummary
    first_line: str
    banner: str
    """What is unfinished or not declared; empty if nothing."""
    opening: Opening
    """What an experiment that decides no claim is for."""
    answers: list[Answer]
    """None where no claim can be decided."""
    summary: list[str]
    verdicts: list[Verdict]
    judged: dict[str, Claim]
    """Those with a verdict, by id."""
    unaddressed: list[tuple[Claim, str]]
    """Claims that the sweep has no arms for, and what each needs."""
    arms: list[ArmRow]
    needs: list[str]
    """Seeds that the margins would take, a sentence each."""
    weights: list[WeightRow]
    """Arms whose weights were measured by probes."""
    ranks: list[RankRatio]
    tasks: list[OverTasks]
    cells: list[CellRow]
    statuses: list[StatusRow]
    repeats: list[Repeat]
    samples: list[Sample]
    methods: list[str]
    glossary: list[tuple[str, str]]
    provenance: list[str]

    @property
    def headlines(self) -> list[str]:
        """The page's first lines: subject, what is unfinished, answers, scores and rates.

        Of a search or an ablation its outcome comes before what is unfinished.
        """
        answered = (f"{answer.question} {answer.text}" for answer in self.answers)
        own = self.opening
        lines = (self.first_line, *own.lines, self.banner, *answered, *self.summary)
        return [line for line in lines if line]


def find(sweep: Sweep) -> Findings:
    """Compute everything that a report says."""
    search = search_summary(sweep)
    verdicts = check_claims(sweep, search)
    rows = arm_rows(sweep, search)
    own = opening(sweep)
    return Findings(
        sweep=sweep,
        search=search,
        first_line=first_line(sweep),
        banner=banner(sweep),
        opening=own,
        answers=[] if own.decides_none else answers(sweep, verdicts),
        summary=summary(sweep, rows),
        verdicts=verdicts,
        judged=_judged(verdicts),
        unaddressed=not_addressed(sweep),
        arms=rows,
        needs=seed_needs(sweep, search),
        weights=weight_rows(sweep),
        ranks=rank_ratios(sweep, search),
        tasks=over_tasks(sweep),
        cells=cell_rows(sweep),
        statuses=status_rows(sweep),
        repeats=repeats(sweep),
        samples=list(_samples(sweep)),
        methods=methods(sweep, search),
        glossary=_glossary(sweep, rows, verdicts),
        provenance=provenance_lines(sweep),
    )


def _judged(verdicts: Sequence[Verdict]) -> dict[str, Claim]:
    ids = {verdict.claim_id for verdict in verdicts}
    return {claim.claim_id: claim for claim in claims() if claim.claim_id in ids}


def _samples(sweep: Sweep) -> Iterator[Sample]:
    """A few of the last completions of each arm, from a report run where there is one."""
    if sweep.imported:
        return
    for arm in arms(sweep):
        mine = sweep.runs[sweep.runs["arm"] == arm.name].sort_values(["phase", "seed"])
        if len(mine):
            run_id = str(mine["run_id"].iloc[0])
            for line in samples(sweep, run_id, SAMPLES_PER_ARM):
                yield Sample(arm.name, run_id, line)


def _glossary(
    sweep: Sweep, rows: Sequence[ArmRow], found: Sequence[Verdict]
) -> list[tuple[str, str]]:
    """Every status and flag that the report uses, in words."""
    used = dict.fromkeys(str(status) for status in sweep.planned["status"])
    for row in rows:
        used |= dict.fromkeys(row.optimum.flags if row.optimum else ())
        used |= dict.fromkeys(row.ratio.flags if row.ratio else ())
        used |= dict.fromkeys(flag for flag, _ in row.flags)
        used |= dict.fromkeys(filter(None, (row.difference_obstacle, row.ratio_obstacle)))
    for verdict in found:
        used |= dict.fromkeys(verdict.flags)
    return [(code, meaning(code)) for code in used]
