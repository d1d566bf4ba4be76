"""A table of cells as text, as every format of a report shows it in its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class DataTable:
    """Cells as text below their headings.

    `keys`: how many columns name a row; a format that divides a wide table repeats them. `texts`: further columns of
    words, the others are of numbers. `best`: rows that stand out. `brief`: columns of the short form, the most
    important first, and not those that name a row; None for all.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    keys: int = 1
    texts: Collection[int] = ()
    best: Collection[int] = ()
    brief: Sequence[int] | None = None

    @property
    def short(self) -> DataTable:
        """The short form of the table."""
        return self.of_columns(self.brief or [])

    def of_columns(self, chosen: Collection[int]) -> DataTable:
        """The columns that name a row and the chosen ones, in the order of the table."""
        columns = [place for place in range(len(self.headings)) if place < self.keys or place in chosen]
        return replace(
            self,
            headings=[self.headings[place] for place in columns],
            rows=[[row[place] for place in columns] for row in self.rows],
            texts=[columns.index(place) for place in self.texts if place in columns],
            brief=None,
        )

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, which are aligned to the left."""
        return column < self.keys or column in self.texts
