"""What an ablation found, as a table at the end of its sweep."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from study.plan.ablate import Step, steps
from study.plan.experiment import Plan
from study.plan.select import Selection
from study.records.record import Record


def print_path(
    console: Console,
    plan: Plan,
    records: Mapping[str, Record],
    selections: Mapping[str, Selection],
) -> None:
    """Print a row for each factor that was changed; nothing for other experiments."""
    ablate = plan.experiment.ablate
    found = [] if ablate is None else steps(plan, records, selections)
    if ablate is None or not found:
        return
    way = "path" if ablate.path else "one factor at a time,"
    table = Table(
        title=f"{way} from {ablate.source} to {ablate.target}",
        caption="Mean search scores, which chose the path; the report has intervals from report "
        "seeds.",
    )
    headings = ["factor changed", "score", "gain", *(["not taken"] if ablate.path else [])]
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("score", "gain") else "left")
    source = selections.get(ablate.source)
    table.add_row(ablate.source, f"{source.mean_score:.3f}" if source else "no score")
    for step in found:
        cells = [step.factor, f"{step.score:.3f}", f"{step.gain:+.3f}"]
        table.add_row(*cells, *([_rivals(step)] if ablate.path else []))
    if not ablate.path and source and ablate.target in selections:
        score = selections[ablate.target].mean_score
        gain = score - source.mean_score
        table.add_row(f"all ({ablate.target})", f"{score:.3f}", f"{gain:+.3f}")
    console.print(table)


def _rivals(step: Step) -> str:
    """The gains of the factors that were not taken, the best first."""
    ordered = sorted(step.rivals.items(), key=lambda item: -item[1])
    return ", ".join(f"{factor} {gain:+.3f}" for factor, gain in ordered)
