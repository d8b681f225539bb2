//! A table that is written in every form a report has: for a terminal, as Markdown, as HTML.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, TableStyle, Width, presets,
};

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

    /// For a terminal of so many columns, where it is known how many: cells are broken into lines between their words,
    /// and where that is not enough each row is a paragraph.
    #[must_use]
    pub fn fitted(&self, terminal: Option<u16>) -> String {
        let whole = self.text();
        let Some(columns) = terminal else { return whole };
        let room = usize::from(columns);
        if width(&whole) <= room {
            return whole;
        }
        let least: Vec<u16> = self.longest_words().map(|word| word + PADDING).collect();
        let frame = least.len() + 1;
        if least.iter().copied().map(usize::from).sum::<usize>() + frame > room {
            return self.paragraphs(room);
        }
        let mut table = self.table(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        let bounds = least.into_iter().map(Width::Fixed).map(ColumnConstraint::LowerBoundary);
        table.set_constraints(bounds);
        table.to_string()
    }

    /// How long the longest word of each column is, which nothing breaks.
    fn longest_words(&self) -> impl Iterator<Item = u16> {
        self.shown().map(|(at, column)| {
            let cells = self.rows.iter().filter_map(move |row| row.get(at));
            let texts = cells.map(|cell| cell.text.as_str()).chain([column.short]);
            let words = texts.flat_map(str::split_whitespace).map(|word| word.chars().count());
            u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX - PADDING)
        })
    }

    /// Each row by itself: its first cell, and below it the others behind the names of their columns.
    fn paragraphs(&self, room: usize) -> String {
        let paragraph = |row: &Vec<Cell>| {
            let mut cells = self.shown().filter_map(|(at, column)| Some((column, row.get(at)?)));
            let heading = cells.next().map_or("", |(_, cell)| &cell.text);
            let named = |(column, cell): (&Column, &Cell)| {
                format!("{} {}", column.short, cell.text).trim().to_owned()
            };
            let rest: Vec<String> = cells.map(named).collect();
            let mut lines = filled(heading, "", room);
            lines.extend(listed(&rest, "  ", room));
            lines.join("\n")
        };
        self.rows.iter().map(paragraph).collect::<Vec<String>>().join("\n")
    }

    /// The columns that a terminal shows, with their places.
    fn shown(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.page_only)
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

/// A blank on either side of what a cell says.
const PADDING: u16 = 2;

/// How many columns a text takes.
fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Lines of things with commas between them, each thing on one line where that has room for it.
#[must_use]
pub fn listed(things: &[String], indent: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, thing) in things.iter().enumerate() {
        let comma = if at + 1 < things.len() { "," } else { "" };
        let thing = format!("{thing}{comma}");
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + thing.chars().count() <= room => {
                line.push(' ');
                line.push_str(&thing);
            }
            _ => lines.extend(filled(&thing, indent, room)),
        }
    }
    lines
}

/// Lines of words, none longer than there is room, but for a word that is.
fn filled(text: &str, indent: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
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

    #[test]
    fn words_are_never_broken_and_a_row_that_does_not_fit_is_a_paragraph() {
        let names = ["path", "threads", "p50", "p50 : in-process"];
        let mut table = Table::new(names.map(Column::number).to_vec());
        table.add(
            ["burst-client-outputs", "1", "12.5 us", "1.083 (1.017 - 1.174)"].map(str::to_owned),
        );
        let fitted = table.fitted(Some(56));
        assert!(fitted.contains("│ burst-client-outputs ┆"), "{fitted}");
        assert!(width(&fitted) <= 56, "{fitted}");
        let heading = "burst-client-outputs\n  threads 1, p50 12.5 us,\n";
        let want = format!("{heading}  p50 : in-process 1.083 (1.017 - 1.174)");
        assert_eq!(table.fitted(Some(45)), want, "what belongs together stays on one line");
        let want = format!("{heading}  p50 : in-process 1.083 (1.017 -\n  1.174)");
        assert_eq!(table.fitted(Some(33)), want);
    }
}
