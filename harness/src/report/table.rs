//! A table that is written in every form a report has: for a terminal, as Markdown, as HTML.

use comfy_table::{CellAlignment, ContentArrangement, TableStyle, presets};

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name where room is scarce.
    short: &'static str,
    /// Its name on a page.
    pub(super) full: &'static str,
    /// Words, not numbers: begins at the left.
    pub(super) is_text: bool,
    /// Whether only a page has the room for it.
    page_only: bool,
}

impl Column {
    /// A column of words.
    #[must_use]
    pub const fn text(name: &'static str) -> Column {
        Column { short: name, full: name, is_text: true, page_only: false }
    }

    /// A column of numbers.
    #[must_use]
    pub const fn number(name: &'static str) -> Column {
        Column { is_text: false, ..Column::text(name) }
    }

    /// The same with another name on a page.
    #[must_use]
    pub const fn in_full(self, full: &'static str) -> Column {
        Column { full, ..self }
    }

    /// The same on a page alone.
    #[must_use]
    pub const fn on_pages(self) -> Column {
        Column { page_only: true, ..self }
    }
}

/// A cell.
#[derive(Debug, Clone)]
pub struct Cell {
    pub(super) text: String,
    /// On a page a colour says so.
    pub(super) is_good: Option<bool>,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, is_good: None }
    }
}

impl Cell {
    /// A word that says whether something is as it should be.
    #[must_use]
    pub fn judged(word: &str, is_good: Option<bool>) -> Cell {
        Cell { text: word.to_owned(), is_good }
    }
}

/// Columns and rows.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// One more row, with a cell for every column.
    pub fn add(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        self.styled(presets::UTF8_FULL_CONDENSED)
    }

    /// For a document.
    #[must_use]
    pub fn markdown(&self) -> String {
        self.styled(presets::ASCII_MARKDOWN)
    }

    /// For a terminal of so many columns, where it is known how many: cells are broken into lines where need be.
    #[must_use]
    pub fn fitted(&self, terminal: Option<u16>) -> String {
        let mut table = self.table(presets::UTF8_FULL_CONDENSED);
        if let Some(columns) = terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        table.to_string()
    }

    /// For a spreadsheet, after RFC 4180: commas, names in the first line, those of a page where they differ.
    #[must_use]
    pub fn csv(&self) -> String {
        let line = |cells: Vec<&str>| {
            let cells: Vec<String> = cells.into_iter().map(quoted).collect();
            cells.join(",") + "\r\n"
        };
        let names = line(self.columns.iter().map(|column| column.full).collect());
        let rows = self.rows.iter();
        let rows = rows.map(|row| line(row.iter().map(|cell| cell.text.as_str()).collect()));
        names + &rows.collect::<String>()
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(super) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    fn styled(&self, style: TableStyle) -> String {
        self.table(style).to_string()
    }

    fn table(&self, style: TableStyle) -> comfy_table::Table {
        let shown = || self.columns.iter().filter(|column| !column.page_only);
        let mut table = comfy_table::Table::new();
        table.load_style(style);
        table.set_header(shown().map(|column| column.short));
        for row in &self.rows {
            let cells = self.columns.iter().zip(row).filter(|(column, _)| !column.page_only);
            table.add_row(cells.map(|(column, cell)| {
                let written = comfy_table::Cell::new(&cell.text);
                if column.is_text { written } else { written.set_alignment(CellAlignment::Right) }
            }));
        }
        table
    }
}

/// A cell as it stands between commas.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_short_names_and_not_what_only_a_page_has_room_for() {
        let columns = vec![
            Column::text("peer"),
            Column::number("RT/s").in_full("round trips/s"),
            Column::number("prepare").on_pages(),
        ];
        let mut table = Table::new(columns);
        table.add(["ours", "12", "9"].map(|text| text.to_owned()));
        let markdown = table.markdown();
        let lines: Vec<&str> = markdown.lines().collect();
        assert_eq!((lines[0], lines[2]), ("| peer | RT/s |", "| ours |   12 |"), "{markdown}");
        assert!(table.text().contains("│ ours ┆   12 │"), "{}", table.text());
    }

    #[test]
    fn a_spreadsheet_gets_every_column_and_commas_within_cells_are_quoted() {
        let columns =
            vec![Column::text("peer"), Column::number("RT/s").in_full("trips").on_pages()];
        let mut table = Table::new(columns);
        table.add(["ours, \"new\"", "12"].map(|text| text.to_owned()));
        assert_eq!(table.csv(), "peer,trips\r\n\"ours, \"\"new\"\"\",12\r\n");
    }

    #[test]
    fn a_narrow_terminal_is_not_exceeded() {
        let mut table = Table::new(vec![Column::text("what"), Column::text("why")]);
        table.add(
            ["many words in one cell that", "no narrow terminal has room for"]
                .map(|text| text.to_owned()),
        );
        assert!(table.text().lines().any(|line| line.chars().count() > 40));
        let fitted = table.fitted(Some(40));
        assert!(fitted.lines().all(|line| line.chars().count() <= 40), "{fitted}");
    }
}
