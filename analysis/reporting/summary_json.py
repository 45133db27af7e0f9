"""A report as plain data, for other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.figures.report import FigureFile
from analysis.reporting.findings import Findings
from analysis.reporting.table_frames import arms_frame, ranks_frame, tasks_frame


def summary_of(found: Findings, figures: Sequence[FigureFile]) -> dict[str, Any]:
    """A report as plain data; paths are relative to ``report/``."""
    sweep = found.sweep
    excluded = Counter(str(kind) for kind in sweep.excluded["kind"])
    return {
        "name": sweep.name,
        "kind": sweep.kind,
        "subject": found.first_line,
        "opening": found.opening.lines,
        "winner": asdict(found.opening.winner) if found.opening.winner else None,
        "ablation": asdict(found.opening.ablation) if found.opening.ablation else None,
        "decides_no_claim": found.opening.decides_none,
        "banner": found.banner,
        "direction": sweep.direction,
        "score_metric": sweep.score_metric,
        "runs": len(sweep.runs),
        "expected_runs": sweep.expected,
        "answers": [asdict(answer) for answer in found.answers],
        "verdicts": [asdict(verdict) for verdict in found.verdicts],
        "not_addressed": [
            {"claim_id": claim.claim_id, "title": claim.title, "needs": lack}
            for claim, lack in found.unaddressed
        ],
        "arms": arms_frame(found.arms).to_dict("records"),
        "rank_ratios": ranks_frame(found.ranks).to_dict("records"),
        "tasks": tasks_frame(found.tasks).to_dict("records"),
        "seeds_needed": found.needs,
        "noise_floor": asdict(found.search.floor) if found.search.floor else None,
        "excluded": dict(excluded),
        "repeats": [asdict(repeat) for repeat in found.repeats],
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                "files": [f"figures/{figure.name}.{suffix}" for suffix in ("png", "pdf")]
                if figure.svg is not None
                else [],
                "missing": figure.missing,
            }
            for figure in figures
        ],
        "methods": found.methods,
        "provenance": found.provenance,
    }
