//! Tables of Markdown: columns as wide as their cells, narrower where the screen is.

use super::text::{Break, Piece, Row, wrap};
use super::theme;

/// A column is never narrower than this.
const MIN_COLUMN: usize = 3;

/// A table that is being read.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Rows of cells; the first row is the head.
    cells: Vec<Vec<Vec<Piece>>>,
}

impl Table {
    pub fn begin_row(&mut self) {
        self.cells.push(Vec::new());
    }

    pub fn push_cell(&mut self, cell: Vec<Piece>) {
        if let Some(row) = self.cells.last_mut() {
            row.push(cell);
        }
    }

    /// Lays the table out.
    pub fn rows(&self, width: usize) -> Vec<Row> {
        let widths = self.widths(width);
        let mut rows = Vec::new();
        for (at, cells) in self.cells.iter().enumerate() {
            rows.extend(self.row(cells, &widths));
            if at == 0 {
                let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                rows.push(Row::new(&lines.join("─┼─"), theme::dim()).cut(width));
            }
        }
        rows
    }

    /// The widths of the columns. Wide columns give way first.
    fn widths(&self, width: usize) -> Vec<usize> {
        let n_columns = self.cells.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = self.cells.iter().filter_map(|row| row.get(column));
            cells.map(|cell| Row(cell.clone()).width()).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..n_columns).map(widest).collect();
        let room = width.saturating_sub(3 * n_columns.saturating_sub(1));
        let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
        while excess > 0 {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_COLUMN) else { break };
            let step = excess.min((*widest / 4).max(1)).min(*widest - MIN_COLUMN);
            *widest -= step;
            excess -= step;
        }
        widths
    }

    fn row(&self, cells: &[Vec<Piece>], widths: &[usize]) -> Vec<Row> {
        let empty = Vec::new();
        let cell = |(column, width): (usize, &usize)| {
            wrap(cells.get(column).unwrap_or(&empty), *width, Break::Words, &[], &[])
        };
        let columns: Vec<Vec<Row>> = widths.iter().enumerate().map(cell).collect();
        let height = columns.iter().map(Vec::len).max().unwrap_or(0);
        let mut rows = Vec::with_capacity(height);
        for line in 0..height {
            let mut row = Row::default();
            for (column, width) in columns.iter().zip(widths) {
                if !row.0.is_empty() {
                    row.0.push(Piece::new(" │ ", theme::dim()));
                }
                let cell = column.get(line).cloned().unwrap_or_default();
                let padding = width.saturating_sub(cell.width());
                row.0.extend(cell.0);
                row.0.push(Piece::plain(&" ".repeat(padding)));
            }
            rows.push(row);
        }
        rows
    }
}
