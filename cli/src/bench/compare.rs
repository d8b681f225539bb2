//! `burst bench compare A.json B.json`: what became slower or faster from one run to another.
//!
//! Each round of a run gives one figure: of a model over a path its median, of a round trip its median over
//! that of its floor. The question is by which factor B's figures lie above A's, and how sure that is:
//! `interval.rs`. A verdict needs the whole interval on one side of a threshold, as two runs on one machine
//! differ by something that no number of rounds within a run shows.

mod interval;
mod runs;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use burst_harness::engine::Spread;
use burst_harness::report::{Cell, Column, Table};
use serde::Serialize;

use crate::{failure, json, out};
use interval::Interval;
use runs::{Figures, RunFile};

/// Names of rows that only one run has: so many are told.
const NAMED_MAX: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What `burst bench ... --json` printed before.
    #[arg(value_name = "A.json")]
    a: PathBuf,
    /// And what it printed after.
    #[arg(value_name = "B.json")]
    b: PathBuf,
    /// Differences up to so many percent are none.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 5.0,
        value_parser = percent
    )]
    threshold: f64,
    /// As a table for a document, or for another program.
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
    format: Format,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal.
    Text,
    /// For a document.
    Markdown,
    /// With commas, for a spreadsheet.
    Csv,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent),
        _ => Err("expected a number from 0 to 1000".to_owned()),
    }
}

/// The columns of numbers of a spreadsheet.
const NUMBERS: [&str; 9] =
    ["A", "A min", "A max", "B", "B min", "B max", "B/A", "B/A low", "B/A high"];

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// By more than the threshold, surely.
    Slower,
    /// The same the other way.
    Faster,
    /// Surely by less than the threshold, either way.
    Same,
    /// The rounds differ too much, or there are too few.
    Unclear,
}

impl Verdict {
    fn of(interval: Option<Interval>, threshold: f64) -> Verdict {
        let most = 1.0 + threshold / 100.0;
        let least = most.recip();
        match interval {
            Some(Interval { low, .. }) if low > most => Verdict::Slower,
            Some(Interval { high, .. }) if high < least => Verdict::Faster,
            Some(Interval { low, high, .. }) if low >= least && high <= most => Verdict::Same,
            _ => Verdict::Unclear,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
        }
    }
}

/// One thing that both runs measured.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// `us`, or `ratio` to a floor of the same round.
    unit: &'static str,
    /// Over the rounds of each run.
    a: Spread,
    b: Spread,
    rounds: [usize; 2],
    /// B over A; `null` where there are too few rounds.
    ratio: Option<Interval>,
    verdict: Verdict,
}

/// Everything that was compared.
#[derive(Debug, Serialize)]
struct Report {
    a: String,
    b: String,
    threshold_percent: f64,
    slower: usize,
    faster: usize,
    unclear: usize,
    rows: Vec<Row>,
    /// What only one of them measured.
    only_in_a: Vec<String>,
    only_in_b: Vec<String>,
    /// What makes the runs hard to compare.
    warnings: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = Report::of(&RunFile::read(&args.a)?, &RunFile::read(&args.b)?, args.threshold)?;
    let mut to = out::stdout();
    match args.format {
        _ if args.json => writeln!(to, "{}", json::object(&json::BENCH_COMPARE, &report)?)?,
        Format::Text => report.write_text(&mut to)?,
        Format::Markdown => writeln!(to, "{}", report.table().markdown())?,
        Format::Csv => write!(to, "{}", report.sheet().csv())?,
    }
    Ok(ExitCode::from(if report.slower == 0 { 0 } else { failure::NO }))
}

impl Report {
    fn of(a: &RunFile, b: &RunFile, threshold: f64) -> Result<Report> {
        if a.kind != b.kind {
            bail!(
                "{} is of burst {}, {} of burst {}",
                a.name,
                a.kind.name(),
                b.name,
                b.kind.name()
            );
        }
        let mut rows = Vec::new();
        for (name, of_a) in &a.figures {
            let Some(of_b) = b.figures.get(name) else { continue };
            rows.extend(row(name, of_a, of_b, threshold));
        }
        if rows.is_empty() {
            bail!("{} and {} have nothing in common", a.name, b.name);
        }
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let only = |one: &RunFile, other: &RunFile| {
            let names = one.figures.keys().filter(|name| !other.figures.contains_key(*name));
            names.cloned().collect()
        };
        Ok(Report {
            a: a.name.clone(),
            b: b.name.clone(),
            threshold_percent: threshold,
            slower: count(Verdict::Slower),
            faster: count(Verdict::Faster),
            unclear: count(Verdict::Unclear),
            only_in_a: only(a, b),
            only_in_b: only(b, a),
            warnings: runs::differences(a, b),
            rows,
        })
    }

    fn table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::text("what"),
            Column::number("A (range)"),
            Column::number("B (range)"),
            Column::number("B/A (95 %)"),
            Column::text("verdict"),
        ]);
        for row in &self.rows {
            let digits = if row.unit == runs::RATIO { 3 } else { 1 };
            let ratio = row.ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.text());
            let is_good = match row.verdict {
                Verdict::Slower => Some(false),
                Verdict::Faster => Some(true),
                Verdict::Same | Verdict::Unclear => None,
            };
            let cells = [
                format!("{} [{}]", row.name, row.unit),
                row.a.text(digits),
                row.b.text(digits),
                ratio,
            ];
            let verdict = Cell::judged(row.verdict.word(), is_good);
            table.add(cells.into_iter().map(Cell::from).chain([verdict]));
        }
        table
    }

    /// For a spreadsheet: a number in each cell.
    fn sheet(&self) -> Table {
        let mut table = Table::new(
            [Column::text("what"), Column::text("unit")]
                .into_iter()
                .chain(NUMBERS.map(Column::number))
                .chain([Column::text("verdict")])
                .collect(),
        );
        for row in &self.rows {
            let (a, b) = (&row.a, &row.b);
            let ratio = row.ratio.map(|ratio| [ratio.ratio, ratio.low, ratio.high]);
            let numbers = [a.median, a.min, a.max, b.median, b.min, b.max].map(Some);
            let numbers = numbers.into_iter().chain(ratio.map_or([None; 3], |of| of.map(Some)));
            let numbers = numbers.map(|number| number.map_or_else(String::new, |n| n.to_string()));
            let cells = [row.name.clone(), row.unit.to_owned()].into_iter().chain(numbers);
            table.add(cells.chain([row.verdict.word().to_owned()]));
        }
        table
    }

    fn write_text(&self, to: &mut dyn Write) -> Result<()> {
        writeln!(to, "{}", self.table().fitted(out::columns()))?;
        for warning in &self.warnings {
            writeln!(to, "{warning}")?;
        }
        for (names, file) in [(&self.only_in_a, &self.a), (&self.only_in_b, &self.b)] {
            if !names.is_empty() {
                let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
                let more = names.len() - shown.len();
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                writeln!(to, "only in {file}: {}{more}", shown.join(", "))?;
            }
        }
        let Report { slower, faster, unclear, threshold_percent, rows, .. } = self;
        writeln!(
            to,
            "{}: {slower} slower, {faster} faster, {unclear} unclear, by more than {threshold_percent} %",
            out::counted(rows.len() as u64, "figure"),
        )?;
        Ok(())
    }
}

fn row(name: &str, a: &Figures, b: &Figures, threshold: f64) -> Option<Row> {
    let ratio = interval::of_ratio(&a.rounds, &b.rounds);
    Some(Row {
        name: name.to_owned(),
        unit: a.unit,
        a: Spread::of(a.rounds.iter().copied())?,
        b: Spread::of(b.rounds.iter().copied())?,
        rounds: [a.rounds.len(), b.rounds.len()],
        ratio,
        verdict: Verdict::of(ratio, threshold),
    })
}
