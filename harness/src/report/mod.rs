//! One report of everything that is measured here: text for people, one JSON object for programs, and
//! a page with drawings. What was found is one of two kinds of [`Findings`]: round trips between two
//! processes, or models over every path to a driver.
//!
//! | file | what |
//! |---|---|
//! | `page.rs`, `page.css`, `plot.rs`, `ticks.rs` | the page; how it looks; its drawings; marks on their axes |
//! | `table.rs` | a table in every form |
//! | `units.rs` | how numbers are written |

mod escape;
mod page;
mod plot;
mod table;
mod ticks;
mod units;

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::HarnessError;
use crate::machine::Machine;

pub use page::Page;
pub use plot::{Drawing, Heights, Line, Scale};
pub use table::{Cell, Column, Table, listed};
pub use units::{counted, dash, mib, nines, time};

/// A whole run: where, how long, and what was found. In JSON the fields of `found` stand beside the
/// other two.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report<F> {
    /// Where.
    pub machine: Machine,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// What was found.
    #[serde(flatten)]
    pub found: F,
}

/// How figures are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For a document.
    Markdown,
    /// With commas, for a spreadsheet.
    Csv,
}

/// Where figures go, and how they are written there.
pub struct Paper<'a> {
    /// Where.
    pub out: &'a mut dyn Write,
    /// The columns of a terminal; `None` where that is nobody's screen.
    pub columns: Option<u16>,
    /// How.
    pub format: Format,
}

impl<'a> Paper<'a> {
    /// Text, as wide as it comes.
    pub fn plain(out: &'a mut dyn Write) -> Paper<'a> {
        Paper { out, columns: None, format: Format::Text }
    }

    /// Writes a table, which is no wider than the paper.
    ///
    /// # Errors
    /// Writing.
    pub fn table(&mut self, table: &Table) -> Result<(), HarnessError> {
        match self.format {
            // Without an empty line before it, it would be a part of the paragraph.
            Format::Markdown => writeln!(self.out, "\n{}\n", table.markdown())?,
            Format::Text | Format::Csv => writeln!(self.out, "{}", table.fitted(self.columns))?,
        }
        Ok(())
    }
}

/// What one kind of measurement finds.
pub trait Findings: Serialize {
    /// Lines and tables for people, what failed among them.
    ///
    /// # Errors
    /// Writing.
    fn write_text(
        &self,
        machine: &Machine,
        rounds: u32,
        paper: &mut Paper<'_>,
    ) -> Result<(), HarnessError>;

    /// All figures as plain numbers, in one table for a spreadsheet.
    fn figures(&self) -> Table;

    /// A line for each thing that failed and was repeated or left out: it belongs beside the JSON.
    ///
    /// # Errors
    /// Writing.
    fn write_warnings(&self, _out: &mut dyn Write) -> Result<(), HarnessError> {
        Ok(())
    }

    /// A page that needs no other file.
    ///
    /// # Errors
    /// [`HarnessError::Peer`] where a drawing fails.
    fn page(&self, machine: &Machine, rounds: u32) -> Result<String, HarnessError>;
}

impl<F: Findings> Report<F> {
    /// One JSON object.
    ///
    /// # Errors
    /// Writing.
    pub fn write_json(&self, out: &mut dyn Write) -> Result<(), HarnessError> {
        serde_json::to_writer(&mut *out, self)?;
        Ok(writeln!(out)?)
    }

    /// Lines and tables for people, as wide as they come.
    ///
    /// # Errors
    /// Writing.
    pub fn write_text(&self, out: &mut dyn Write) -> Result<(), HarnessError> {
        self.write(&mut Paper::plain(out))
    }

    /// As the paper wants it: lines and tables for people, no table wider than there is room, or figures alone.
    ///
    /// # Errors
    /// Writing.
    pub fn write(&self, paper: &mut Paper<'_>) -> Result<(), HarnessError> {
        match paper.format {
            Format::Csv => Ok(write!(paper.out, "{}", self.found.figures().csv())?),
            Format::Text | Format::Markdown => {
                self.found.write_text(&self.machine, self.rounds, paper)
            }
        }
    }

    /// A page that needs no other file.
    ///
    /// # Errors
    /// [`HarnessError::Peer`] where a drawing fails.
    pub fn page(&self) -> Result<String, HarnessError> {
        self.found.page(&self.machine, self.rounds)
    }

    /// Writes the page into a file, where one is named.
    ///
    /// # Errors
    /// The file cannot be written, which the error names; a drawing fails.
    pub fn write_page(&self, path: Option<&Path>) -> Result<(), HarnessError> {
        let Some(path) = path else { return Ok(()) };
        std::fs::write(path, self.page()?).map_err(|error| {
            HarnessError::peer(format!("cannot write {}: {error}", path.display()))
        })
    }

    /// What a command line asks for: the page into a file, where one is named, then text or one JSON
    /// object. Beside the JSON, what failed goes to standard error.
    ///
    /// # Errors
    /// The file cannot be written, which the error names; a drawing fails; writing.
    pub fn print(
        &self,
        page: Option<&Path>,
        json: bool,
        paper: &mut Paper<'_>,
    ) -> Result<(), HarnessError> {
        self.write_page(page)?;
        if json {
            self.found.write_warnings(&mut std::io::stderr().lock())?;
            return self.write_json(paper.out);
        }
        self.write(paper)
    }
}
