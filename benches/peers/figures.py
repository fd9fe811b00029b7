"""What was measured, and the tables that say it."""
import json
import statistics
from typing import TextIO


class Figures:
    """Figures by round. Each is also written as a line of JSON, at once."""

    def __init__(self, lines: TextIO | None) -> None:
        self.lines, self.round = lines, 0
        self.measured: dict[tuple[str, str, str], list[dict[str, float]]] = {}

    def add(self, what: str, system: str, clients: object, **figures: float) -> None:
        self.measured.setdefault((what, system, str(clients)), []).append(figures)
        self.write(round=self.round, what=what, system=system, clients=str(clients), **figures)

    def write(self, **line: object) -> None:
        if self.lines:
            print(json.dumps(line), file=self.lines, flush=True)

    def systems(self, what: str) -> list[str]:
        return list(dict.fromkeys(system for found, system, _ in self.measured if found == what))

    def clients(self, what: str, system: str) -> list[str]:
        return [clients for found, name, clients in self.measured if (found, name) == (what, system)]

    def median(self, what: str, system: str, clients: object, figure: str) -> float | None:
        rounds = self.measured[what, system, str(clients)]
        values = [figures[figure] for figures in rounds if figure in figures]
        return statistics.median(values) if values else None

    def best(self, what: str, system: str, figure: str) -> tuple[str, float]:
        """The number of clients at which the median is the greatest, and this median."""
        medians = {of: self.median(what, system, of, figure) for of in self.clients(what, system)}
        return max(medians.items(), key=lambda found: found[1])


def number(value: float | None, decimals: int = 0) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def times(ours: float, theirs: float) -> str:
    """How many times theirs ours is."""
    ratio = ours / theirs
    return number(ratio, 1 if ratio >= 3 else 2) + "x"


def table(headings: list[str], rows: list[list[str]], words: tuple[int, ...] = (0,)) -> str:
    """Columns of words are set to the left, the others to the right."""
    columns = []
    for at, column in enumerate(zip(headings, *rows)):
        width = max(map(len, column))
        columns.append([cell.ljust(width) if at in words else cell.rjust(width) for cell in column])
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns))
