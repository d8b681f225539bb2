//! A report as one page that needs no other file: headings, drawings, tables.

use std::fmt::Write;

use super::plot::{Drawing, draw};
use super::table::Table;
use crate::error::HarnessError;
use crate::machine::Machine;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;padding:0 1em;\
max-width:96em;color:#222}h2{margin-top:2em}table{border-collapse:collapse;margin:1em 0;\
font-size:13px;font-variant-numeric:tabular-nums}td,th{border:1px solid #ccc;padding:.2em .5em;\
text-align:right;white-space:nowrap}th{background:#f4f4f4;vertical-align:bottom}\
td:first-child,th:first-child,.text{text-align:left}.no{color:#b00}.good{color:#070}\
.wide{overflow-x:auto}svg{max-width:100%;height:auto}";

/// A page that is being written. Whatever text comes in is escaped here.
#[derive(Debug)]
pub struct Page {
    html: String,
}

impl Page {
    /// The beginning of a page, up to its first paragraph: where it was measured, and, in `how`, by
    /// which rounds.
    #[must_use]
    pub fn new(title: &str, heading: &str, machine: &Machine, how: &str) -> Page {
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>\
             <style>{STYLE}</style><h1>{}</h1><p>{}, {} CPUs, Linux {}, clock step {} ns. {}</p>",
            escape(title),
            escape(heading),
            escape(&machine.processor),
            machine.cpus,
            escape(&machine.kernel),
            machine.clock_step_ns,
            escape(how)
        );
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
    ///
    /// # Errors
    /// [`HarnessError::Peer`] where it fails.
    pub fn drawing(&mut self, drawing: &Drawing<'_>) -> Result<(), HarnessError> {
        self.html += &draw(drawing)?;
        Ok(())
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.html += "</html>\n";
        self.html
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
