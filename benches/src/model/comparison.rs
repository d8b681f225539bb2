//! What was found beside LiteRT: ratios, tables, JSON, a page.

use std::io::Write;

use burst_harness::engine::Spread;
use burst_harness::litert::{PATH as LITERT, Package};
use burst_harness::machine::Machine;
use burst_harness::model::{
    Agreement, ModelReport, ModelsReport, PathReport, Series, page_of, paths, ratio,
};
use burst_harness::report::{Column, Findings, Paper, Report, Table, dash, time};
use burst_harness::{HarnessError, WaitKind};
use serde::Serialize;

use super::class::Class;

/// The path of our reference kernels, in this process.
pub const REFERENCE: &str = "reference kernels";

/// What a run found.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Which package LiteRT came from.
    pub litert: Package,
    /// One per model.
    pub models: Vec<Compared>,
    /// How both ends of the burst waited.
    #[serde(skip)]
    pub wait: WaitKind,
}

/// One model.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// What it is held to.
    pub class: Class,
    /// Our p50 in this process over LiteRT's in the same round, per number of threads.
    pub ours_to_litert: Vec<ThreadRatio>,
    /// What that must not exceed with one thread, and what it should reach.
    pub goal: Option<(f64, f64)>,
    /// p50 of our reference kernels over that of our kernels.
    pub reference_to_ours: Option<Spread>,
    /// LiteRT's outputs against ours.
    pub outputs: Option<Agreement>,
    /// Why there is nothing of LiteRT, where there is nothing.
    pub not_comparable: Option<String>,
    /// Every path, as `burst bench model` has them.
    #[serde(flatten)]
    pub report: ModelReport,
}

/// A ratio with so many threads on both sides.
#[derive(Debug, Serialize)]
pub struct ThreadRatio {
    /// How many.
    pub threads: u32,
    /// Over the rounds.
    pub ratio: Spread,
}

impl Compared {
    /// What was measured of one model.
    #[must_use]
    pub fn new(
        report: ModelReport,
        class: Class,
        series: &[Series],
        not_comparable: Option<String>,
    ) -> Compared {
        let find = |path: &str, threads| {
            let is_it = |t: &&Series| t.label.path == path && t.label.threads == threads;
            series.iter().find(is_it)
        };
        let theirs = series.iter().filter(|one| one.label.path == LITERT);
        let ours_to_litert = theirs.filter_map(|theirs| {
            let threads = theirs.label.threads;
            let ratio = ratio(find(paths::IN_PROCESS, threads)?, theirs)?;
            Some(ThreadRatio { threads, ratio })
        });
        let reference = find(REFERENCE, 1).zip(find(paths::IN_PROCESS, 1));
        Compared {
            class,
            ours_to_litert: ours_to_litert.collect(),
            goal: class.goal(),
            reference_to_ours: reference.and_then(|(slow, fast)| ratio(slow, fast)),
            outputs: report.paths.iter().find(|path| path.path == LITERT).map(|path| path.outputs),
            not_comparable,
            report,
        }
    }

    /// The ratio to LiteRT, for so many threads.
    #[must_use]
    pub fn to_litert(&self, threads: u32) -> Option<&Spread> {
        self.ours_to_litert.iter().find(|one| one.threads == threads).map(|one| &one.ratio)
    }

    fn verdict(&self) -> &'static str {
        match (self.goal, self.to_litert(1)) {
            (Some((_, reach)), Some(ratio)) if ratio.median <= reach => "reached",
            (Some((must, _)), Some(ratio)) if ratio.median <= must => "met",
            (Some(_), Some(_)) => "MISSED",
            _ => "",
        }
    }

    fn row(&self) -> Vec<String> {
        let p50 = |path: Option<&PathReport>| {
            path.map_or_else(dash, |path| time(path.latency_us.p50 * 1e3))
        };
        let report = &self.report;
        let burst = report.path(paths::BURST, 1);
        let gain = report.threads.iter().find(|gain| gain.path == paths::IN_PROCESS);
        let share = report.copies.inputs_share;
        let beside = match (&self.not_comparable, self.to_litert(1)) {
            (Some(_), _) => "not comparable".to_owned(),
            (None, Some(ratio)) => spread(ratio),
            (None, None) => dash(),
        };
        vec![
            report.model.clone() + if report.part.is_some() { " (part)" } else { "" },
            self.class.name().to_owned(),
            p50(report.path(paths::IN_PROCESS, 1)),
            p50(report.path(LITERT, 1)),
            beside,
            self.goal.map_or_else(dash, |(must, reach)| format!("{must} / {reach}")),
            self.verdict().to_owned(),
            self.to_litert(2).map_or_else(dash, spread),
            gain.map_or_else(dash, |gain| spread(&gain.ratio_to_one)),
            self.reference_to_ours.map_or_else(dash, |ratio| format!("{:.0}", ratio.median)),
            burst
                .and_then(|burst| burst.ratio_to_in_process)
                .map_or_else(dash, |ratio| format!("{:.3}", ratio.median)),
            report.copies.inputs_us.map_or_else(dash, |us| time(us * 1e3)),
            share.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share)),
        ]
    }
}

/// Columns of numbers, behind the name of the model and its class.
const NUMBERS: [&str; 11] = [
    "ours",
    "LiteRT",
    "ours : LiteRT",
    "must / reach",
    "",
    "2 threads, ours : LiteRT",
    "ours, 2 threads : 1",
    "reference : ours",
    "burst : in-process",
    "inputs copied",
    "share",
];

impl Findings for Comparison {
    /// A table, and a line about every model that has one to itself.
    fn write_text(
        &self,
        machine: &Machine,
        rounds: u32,
        paper: &mut Paper<'_>,
    ) -> Result<(), HarnessError> {
        for line in self.preface(machine, rounds) {
            writeln!(paper.out, "{line}")?;
        }
        paper.table(&self.table())?;
        self.write_remarks(paper.out, "")
    }

    fn page(&self, machine: &Machine, rounds: u32) -> Result<String, HarnessError> {
        let models = self.models.iter().map(|model| model.report.clone()).collect();
        let found = ModelsReport { wait: self.wait.name().to_owned(), models };
        page_of(&found, "Our driver beside LiteRT", Some(&self.table()), (machine, rounds))
    }
}

/// The text of a report for a document.
///
/// # Errors
/// Writing.
pub fn write_markdown(
    report: &Report<Comparison>,
    out: &mut impl Write,
) -> Result<(), HarnessError> {
    let comparison = &report.found;
    for line in comparison.preface(&report.machine, report.rounds) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{}\n", comparison.table().markdown())?;
    comparison.write_remarks(out, "- ")
}

impl Comparison {
    fn preface(&self, machine: &Machine, rounds: u32) -> [String; 2] {
        let Machine { processor, cpus, kernel, load, .. } = machine;
        let Package { package, version } = &self.litert;
        [
            format!("{processor}, {cpus} CPUs, Linux {kernel}; {package} {version} with XNNPACK."),
            format!(
                "Medians of p50 in {rounds} rounds, everybody taking turns, with the range in \
                 brackets; one thread where nothing else is said. Load at the start {load:.2}."
            ),
        ]
    }

    fn table(&self) -> Table {
        let words = ["model", "class"].map(Column::text);
        let mut table = Table::new([&words[..], &NUMBERS.map(Column::number)].concat());
        for model in &self.models {
            table.add(model.row());
        }
        table
    }

    fn write_remarks(&self, out: &mut dyn Write, bullet: &str) -> Result<(), HarnessError> {
        for remark in self.models.iter().flat_map(remarks) {
            writeln!(out, "{bullet}{remark}")?;
        }
        Ok(())
    }
}

/// What has to be said of a model beside its row.
fn remarks(model: &Compared) -> Vec<String> {
    let name = &model.report.model;
    let mut remarks = Vec::new();
    if let Some(part) = &model.report.part {
        remarks.push(format!("{name}: on both sides {part}."));
    }
    if let Some(reason) = &model.not_comparable {
        remarks.push(format!("{name}: not comparable, {reason}."));
    }
    if model.outputs.is_some_and(|outputs| !outputs.holds()) {
        remarks.push(format!("{name}: LiteRT's outputs are not ours."));
    }
    remarks
}

fn spread(spread: &Spread) -> String {
    spread.text(2)
}
