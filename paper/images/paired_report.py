"""The page of the paired comparison: results, differences seed by seed, and what follows for the paper's claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper.engine.pairing import PairedDifference, paired_difference, pooled_deviation, seeds_needed, together_sentence
from paper.engine.winners import Missing, Winner
from paper.images import paper
from paper.images.report import ResultTable
from paper.page import epochs_text, markdown_table

REFERENCE = paper.COSINE
RESOLVED = 0.5  # percentage points


@dataclass(frozen=True)
class PairedTable:
    """The winners at one budget and momentum, and the runs that are missing."""

    title: str  # name of the network
    epochs: int  # budget
    momentum: float  # momentum of all runs
    rates: Sequence[float]  # rates that every schedule was tried with
    winners: Sequence[Winner]  # winner of each complete grid, with its trials so far
    missing: Sequence[Missing]  # what each incomplete schedule lacks
    published: Mapping[str, Sequence[str]]  # numbers that the paper prints for a schedule: training loss and accuracy

    @property
    def heading(self) -> str:
        """Heading of the section."""
        return f"{self.title}, {epochs_text(self.epochs)}" + (f", momentum {self.momentum:g}" if self.momentum else "")

    @property
    def results(self) -> ResultTable:
        """The table of means and deviations."""
        return ResultTable(self.heading, self.winners, self.published)

    def differences(self, reference: str = REFERENCE) -> dict[str, PairedDifference]:
        """Test accuracy of every other schedule minus that of ``reference``, in percentage points."""
        trials = self.results.trials("accuracy")
        if reference not in trials:
            return {}
        found = {name: paired_difference(one, trials[reference]) for name, one in trials.items() if name != reference}
        return {name: difference for name, difference in found.items() if difference is not None}

    def paragraphs(self) -> list[str]:
        """Everything that the page says about this table, after its heading."""
        parts = [missing_sentence(self.missing)]
        if self.winners:
            parts += [self.results.markdown(), " ".join([*self.results.claims(), edge_sentence(self)])]
        differences = self.differences()
        if differences:
            parts += [f"Test accuracy minus that of {REFERENCE}, in percentage points, seed by seed:"]
            parts += [differences_table(differences), seeds_sentence(differences)]
            trials = self.results.trials("accuracy")
            parts.append(together_sentence(trials, REFERENCE, minimise=False, digits=2, unit="percentage points"))
        parts.append(verdict(self))
        return [part for part in parts if part]


def differences_table(differences: Mapping[str, PairedDifference]) -> str:
    """Mean difference ± its standard error, the 95 % interval, each seed, and the seeds that 0.5 points need."""
    rows = []
    for name, found in differences.items():
        low, high = found.interval
        shown = ", ".join(f"{value:+.2f}" for value in found.values)
        real = {1: "higher", -1: "lower", 0: "not resolved"}[found.sign]
        needed = f"{seeds_needed(RESOLVED, found.deviation):,}"
        rows.append([name, f"{found.mean:+.2f} ± {found.error:.2f}", f"{low:+.2f} … {high:+.2f}", real, shown, needed])
    columns = ["schedule", "difference ± standard error", "95 % interval", "verdict", "by seed"]
    return markdown_table([*columns, f"seeds to resolve {RESOLVED:g}"], rows)


def seeds_sentence(differences: Mapping[str, PairedDifference]) -> str:
    """The number of seeds that resolves 0.5 percentage points, from all rows together."""
    deviation = pooled_deviation(differences.values())
    needed = seeds_needed(RESOLVED, deviation)
    return (
        f"Pooled over the rows, a difference has a standard deviation of {deviation:.2f} points per seed; a paired"
        f" t-test (two-sided, 5 %) then detects {RESOLVED:g} points with probability 80 % from {needed:,} seeds on. The"
        " last column says the same for each row alone, whose deviation from so few seeds is itself uncertain."
    )


def edge_sentence(table: PairedTable) -> str:
    """Which winners have the smallest or the largest rate tried, so a rate outside the grid may be better."""
    ends = (min(table.rates), max(table.rates))
    at_edge = [f"{w.schedule} ({w.settings['lr']:g})" for w in table.winners if w.settings["lr"] in ends]
    if not at_edge:
        return "No winner has the smallest or the largest rate tried."
    return f"Winners at the edge of the rates tried: {', '.join(at_edge)}."


def missing_sentence(missing: Sequence[Missing]) -> str:
    """What is not finished; empty if everything is."""
    if not missing:
        return ""
    words = []
    for one in missing:
        grid = f"{one.num_grid} of the runs to choose a rate and " if one.num_grid else ""
        words.append(f"{one.schedule} ({grid}{one.num_trials} trial{'s' if one.num_trials != 1 else ''})")
    return f"**Not finished:** {'; '.join(words)}. A schedule appears below once its rate is chosen."


def verdict(table: PairedTable) -> str:
    """What the runs say about the paper's claim: Eigencurve above cosine decay and far above step decay."""
    found = {name: table.differences(name).get(paper.EIGENCURVE) for name in (paper.COSINE, paper.STEP)}
    sentences = [_against(table, name, difference) for name, difference in found.items() if difference is not None]
    return f"**Verdict on the paper's claim.** {' '.join([*sentences, _ahead(table)]).strip()}" if sentences else ""


def _ahead(table: PairedTable) -> str:
    """Which schedules that the paper does not have are above Eigencurve; empty if none is."""
    words = []
    for name, found in table.differences(paper.EIGENCURVE).items():
        if name not in table.published and found.sign == 1:
            low, high = found.interval
            words.append(f"{name} by {found.mean:.2f} ({low:+.2f} … {high:+.2f})")
    listed = f"Schedules that the paper's table does not have are above Eigencurve: {'; '.join(words)}."
    return listed if words and table.published else ""


def _against(table: PairedTable, other: str, difference: PairedDifference) -> str:
    low, high = difference.interval
    claimed = _published_gap(table, other)
    word = {1: "above", -1: "below", 0: "not resolved from"}[difference.sign]
    sentence = (
        f"Eigencurve is {word} {other} in test accuracy: {difference.mean:+.2f} percentage points, 95 % interval"
        f" {low:+.2f} … {high:+.2f} over {len(difference.values)} seeds."
    )
    if claimed is None:
        return sentence
    if difference.sign == 1:
        agrees = f"This agrees with the paper's {claimed:+.2f} in sign"
        size = "and in size" if low <= claimed <= high else "but not in size"
        return f"{sentence} {agrees} {size}."
    if difference.sign == -1:
        return f"{sentence} This contradicts the paper, which prints {claimed:+.2f}."
    within = "compatible" if low <= claimed <= high else "not compatible"
    return f"{sentence} These runs alone do not show a difference; the paper's {claimed:+.2f} is {within} with them."


def _published_gap(table: PairedTable, other: str) -> float | None:
    """The paper's accuracy of Eigencurve minus that of ``other``, in percentage points."""
    if not {other, paper.EIGENCURVE} <= set(table.published):
        return None
    ours, theirs = (float(table.published[name][1].split("±")[0]) for name in (paper.EIGENCURVE, other))
    return ours - theirs
