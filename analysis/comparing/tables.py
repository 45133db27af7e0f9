"""A comparison as text: what differs, what carries over, then the numbers by question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from analysis.claims.comparison import unfinished
from analysis.comparing import text
from analysis.comparing.differences import UNKNOWN, SettingDifference
from analysis.comparing.experiments import ExperimentComparison
from analysis.comparing.numbers import Quantity
from analysis.comparing.rows import ArmRow, Triple
from analysis.comparing.verdicts import GAP, QUESTIONS, RATE, RATIO, CarryOver, Question
from analysis.reading.arms import count_text, model_name, rate_text, task_name
from analysis.reading.sweep import Sweep
from study.records.printable import printable

PIPE_WIDTH = 400
MAX_VALUE = 60
"""Characters of a setting's value; longer ones are cut."""


def terminal() -> Console:
    """Of standard output: as wide as the terminal; into a pipe as wide as the lines are."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def print_comparison(found: ExperimentComparison, console: Console) -> None:
    """Print everything; the answers come before the numbers they rest on."""
    _say(console, (*_head(found), *_answers(found)))
    for title, table, reasons in _tables(found):
        _say(console, ("", title))
        console.print(table)
        _say(console, (f"  {line}" for line in reasons))
    _say(console, ("", *(f"Note: {note}" for note in found.notes)) if found.notes else ())


def _say(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(printable(line), soft_wrap=True)


def _head(found: ExperimentComparison) -> Iterator[str]:
    yield f"A  {_subject(found.a)}"
    yield f"B  {_subject(found.b)}"
    yield ""
    yield "What differs (A -> B):"
    stated = [d for d in (*found.settings, *found.origins) if UNKNOWN not in (d.a, d.b)]
    yield from (f"  {_difference(d)}" for d in stated)
    if not stated:
        yield "  nothing that both state"
    for side, key in (("A", "a"), ("B", "b")):
        silent = [d.key for d in (*found.settings, *found.origins) if getattr(d, key) == UNKNOWN]
        if silent:
            yield f"  not stated in {side}: {text.few(list(dict.fromkeys(silent)))}"
    yield f"Matched arms: {', '.join(pair.label for pair in found.matching.pairs)}"
    for side, arms in (("A", found.matching.only_a), ("B", found.matching.only_b)):
        if arms:
            yield f"Only in {side}: {text.few([facts.arm.description for facts in arms])}"
    for names in found.matching.ambiguous:
        yield f"Not matched, since several partners fit equally well: {text.few(names)}"


def _subject(sweep: Sweep) -> str:
    seeds = sweep.experiment["seeds"]
    counts = [count_text([len(seeds.get(p) or [])], f"{p} seed") for p in ("search", "report")]
    word = "" if unfinished(sweep) is None else "unfinished: "
    state = "" if sweep.complete else f", {word}{len(sweep.runs)} of {sweep.expected} runs"
    return (
        f"{sweep.origin}: model {_cut(model_name(sweep))}, task {task_name(sweep)}, "
        f"{' and '.join(counts)}{state}"
    )


def _difference(found: SettingDifference) -> str:
    where = f"  ({', '.join(found.arms)})" if found.arms else ""
    return f"{found.key}: {_cut(found.a)} -> {_cut(found.b)}{where}"


def _cut(value: str) -> str:
    return value if len(value) <= MAX_VALUE else f"{value[: MAX_VALUE - 3]}..."


def _answers(found: ExperimentComparison) -> Iterator[str]:
    yield ""
    for question in QUESTIONS:
        verdicts = [v for v in found.verdicts if v.question == question.key]
        if verdicts:
            yield question.text
            yield from _by_verdict(verdicts)


def _by_verdict(verdicts: Sequence[CarryOver]) -> Iterator[str]:
    """A line for each verdict and reason, the arms together that share both."""
    said: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        said.setdefault((v.verdict, v.reason), []).append(v.arm)
    for (verdict, reason), arms in said.items():
        yield f"  {verdict}: {_arms(arms, len(verdicts))} ({reason})"


_Part = tuple[str, str, Callable[[ArmRow], Triple | None], text.Show, text.Show, Question | None]
"""Title, heading of what lies between, the numbers, how they are shown, and the question."""


def _tables(found: ExperimentComparison) -> Iterator[tuple[str, Table, list[str]]]:
    parts: tuple[_Part, ...] = (
        (
            f"Best learning rate LR* (search seeds, f = {found.fraction:.2f} for both)",
            "B / A", lambda r: r.rate, rate_text, text.ratio, RATE,
        ),
        (
            "LR* over FullFT's (search seeds)",
            "ratio of ratios", lambda r: r.over_full, text.ratio, text.ratio, RATIO,
        ),
        ("Score", "B - A", lambda r: r.score, text.score, text.signed, None),
        (
            "Gain over the untrained model (positive is better)",
            "B - A", lambda r: r.gain, text.signed, text.signed, None,
        ),
        (
            "Gap to FullFT (positive: LoRA is better)",
            "B - A", lambda r: r.gap, text.signed, text.signed, GAP,
        ),
    )  # fmt: skip
    for title, between, of, show, show_between, question in parts:
        rows = [(row, triple) for row in found.rows if (triple := of(row)) is not None]
        if rows:
            verdicts = _verdict_words(found, question)
            table = _table(rows, between, show, show_between, verdicts)
            yield title, table, _reasons(rows, title == "Score")


def _verdict_words(found: ExperimentComparison, question: Question | None) -> dict[str, str]:
    if question is None:
        return {}
    return {v.arm: v.verdict for v in found.verdicts if v.question == question.key}


def _table(
    rows: Sequence[tuple[ArmRow, Triple]],
    between: str,
    show: text.Show,
    show_between: text.Show,
    verdicts: dict[str, str],
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("  arm", no_wrap=True)
    columns: list[list[str]] = []
    for heading, side, shown in (
        ("A", "a", show),
        ("B", "b", show),
        (between, "between", show_between),
    ):
        values: list[Quantity] = [getattr(triple, side) for _, triple in rows]
        n = text.common_n(values)
        table.add_column(heading if n is None else f"{heading} (n={n})")
        columns.append([text.quantity(value, shown, n=n is None) for value in values])
    labels = [row.pair.label for row, _ in rows]
    if verdicts:
        table.add_column("verdict")
        columns.append([verdicts[label] for label in labels])
    for label, *cells in zip(labels, *columns, strict=True):
        table.add_row(f"  {label}", *cells)
    return table


def _reasons(rows: Sequence[tuple[ArmRow, Triple]], scores: bool) -> list[str]:
    """Why a number or an interval is not there; arms that share a reason share a line."""
    said: dict[tuple[str, str], list[str]] = {}
    for row, triple in rows:
        for side, quantity in ((" in A", triple.a), (" in B", triple.b), ("", triple.between)):
            known = () if side else (triple.a.reason, triple.b.reason)
            if quantity.reason and not any(k and quantity.reason.endswith(k) for k in known):
                said.setdefault((side, quantity.reason), []).append(row.pair.label)
    lines = [f"{_arms(arms, len(rows))}{side}: {why}" for (side, why), arms in said.items()]
    if scores:
        sources = dict.fromkeys(row.score_from for row, _ in rows)
        lines[:0] = [f"from {a or 'nothing'} in A, {b or 'nothing'} in B" for a, b in sources]
    return lines


def _arms(labels: Sequence[str], of: int) -> str:
    return "all arms" if len(labels) == of > 1 else ", ".join(labels)
