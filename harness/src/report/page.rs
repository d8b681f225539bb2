//! A report as one page that needs no other file: headings, drawings, tables.

use std::fmt::Write;

use super::escape::escape;
use super::plot::{Drawing, draw};
use super::table::Table;
use super::units::counted;
use crate::machine::Machine;

const STYLE: &str = include_str!("page.css");

/// A page that is being written. Whatever text comes in is escaped here.
#[derive(Debug)]
pub struct Page {
    html: String,
}

impl Page {
    /// The beginning of a page: where, when and by which command it was measured, and, in `how`, by which rounds.
    #[must_use]
    pub fn new(title: &str, heading: &str, machine: &Machine, how: &str) -> Page {
        let mut html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{}</title><style>{STYLE}</style></head><body><h1>{}</h1><dl>",
            escape(title),
            escape(heading),
        );
        let Machine { processor, cpus, kernel, clock_step_ns, load, .. } = machine;
        for (name, value) in [
            ("machine", format!("{processor}, {}, Linux {kernel}", counted(*cpus as u64, "CPU"))),
            ("load at the start", format!("{load:.2}")),
            ("clock step", format!("{clock_step_ns} ns")),
            ("began", machine.began.clone()),
            ("version", machine.version.clone()),
            ("command", machine.command.clone()),
            ("how", how.to_owned()),
        ] {
            let (open, close) = if name == "command" { ("<code>", "</code>") } else { ("", "") };
            let _ = write!(html, "<dt>{name}<dd>{open}{}{close}", escape(&value));
        }
        html += "</dl>";
        Page { html }
    }

    /// A heading of a section.
    pub fn heading(&mut self, text: &str) {
        let _ = write!(self.html, "<h2>{}</h2>", escape(text));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = write!(self.html, "<p>{}</p>", escape(text));
    }

    /// A list; none without lines.
    pub fn list(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.html += "<ul>";
        for line in lines {
            let _ = write!(self.html, "<li>{}", escape(line));
        }
        self.html += "</ul>";
    }

    /// A table; none without rows.
    pub fn table(&mut self, table: &Table) {
        if table.rows().is_empty() {
            return;
        }
        self.html += "<div class=\"wide\"><table><tr>";
        for column in table.columns() {
            let class = if column.is_text { " class=\"text\"" } else { "" };
            let _ = write!(self.html, "<th{class}>{}", escape(column.full));
        }
        self.html += "</tr>";
        for row in table.rows() {
            self.html += "<tr>";
            for (column, cell) in table.columns().iter().zip(row) {
                let class = match (cell.is_good, column.is_text) {
                    (Some(true), _) => " class=\"text good\"",
                    (Some(false), _) => " class=\"text no\"",
                    (None, true) => " class=\"text\"",
                    (None, false) => "",
                };
                let _ = write!(self.html, "<td{class}>{}", escape(&cell.text));
            }
            self.html += "</tr>";
        }
        self.html += "</table></div>";
    }

    /// A drawing; none without points.
    pub fn drawing(&mut self, drawing: &Drawing<'_>) {
        self.html += &draw(drawing);
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.html += "</body></html>\n";
        self.html
    }
}
