//! What was found beside LiteRT: ratios, tables, JSON, a page.

use std::io::Write;
use std::path::Path;

use burst_harness::bounds::{Bounds, Check};
use burst_harness::engine::Spread;
use burst_harness::litert::{PATH as LITERT, Package};
use burst_harness::machine::{Machine, peak_memory_kib};
use burst_harness::model::{
    Agreement, ModelReport, ModelsReport, PathReport, Series, Workload, figures_of, page_of, paths,
    ratio, ratio_by_round,
};
use burst_harness::report::{Column, Findings, Format, Paper, Table, dash, time};
use burst_harness::{HarnessError, WaitKind};
use serde::Serialize;

use super::around::{self, Around};
use super::class::Class;
use super::correct::{self, REFERENCE};
use super::idle::Idle;
use crate::checks;

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
    /// The time in which we prepare it over LiteRT's (interpreter built, tensors allocated, delegate applied) in the same
    /// round, with one thread.
    pub prepare_to_litert: Option<Spread>,
    /// What it holds while nothing is executed; `null` where it has no file to be read again.
    pub idle: Option<Idle>,
    /// What is wrong with outputs; empty where nothing is.
    pub wrong: Vec<String>,
    /// What a run can be held to, and what became of it.
    pub checks: Vec<Check>,
    /// p50 of our reference kernels over that of our kernels.
    pub reference_to_ours: Option<Spread>,
    /// LiteRT's outputs against ours.
    pub outputs: Option<Agreement>,
    /// What two cache lines, one each way, took between two CPUs just before trials with several threads, in nanoseconds.
    pub two_lines_ns: Option<Spread>,
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

/// What a model can be held to. A file of bounds names the class of models with it.
#[derive(Debug, Clone, Copy)]
pub enum Ratio {
    /// Our p50 over LiteRT's, each with one thread.
    ToLiteRt,
    /// The same with two on both sides.
    ToLiteRtOnTwo,
    /// Our p50 with two threads over that with one, where that takes a millisecond or longer: below, threads cost more
    /// than they bring.
    TwoToOne,
    /// Our first execution over our p50, with one thread.
    FirstToP50,
    /// The time in which we prepare a model over LiteRT's.
    PrepareToLiteRt,
    /// What an idle model holds of the heap, without 64 KiB, over its weights as they are executed.
    IdleToExecuted,
}

impl Ratio {
    const ALL: [Ratio; 6] = [
        Ratio::ToLiteRt,
        Ratio::ToLiteRtOnTwo,
        Ratio::TwoToOne,
        Ratio::FirstToP50,
        Ratio::PrepareToLiteRt,
        Ratio::IdleToExecuted,
    ];

    /// The name by which a file of bounds knows it.
    #[must_use]
    pub fn name(self, class: Class) -> String {
        let what = match self {
            Ratio::ToLiteRt => "ours : LiteRT, 1 thread",
            Ratio::ToLiteRtOnTwo => "ours : LiteRT, 2 threads",
            Ratio::TwoToOne => "ours, 2 threads : 1, from 1 ms on",
            Ratio::FirstToP50 => "first execution : p50",
            Ratio::PrepareToLiteRt => "prepare, ours : LiteRT",
            Ratio::IdleToExecuted => "idle heap less 64 KiB : weights as executed",
        };
        format!("{}: {what}", class.name())
    }

    fn of(self, found: &Compared) -> Check {
        let report = &found.report;
        let beside = |threads| found.to_litert(threads).map(|ratio| ratio.median);
        let gain = report.threads.iter().find(|one| one.path == paths::IN_PROCESS);
        let is_long = |one: &PathReport| one.latency_us.p50 >= 1000.0;
        let ratio = match self {
            Ratio::ToLiteRt => beside(1),
            Ratio::ToLiteRtOnTwo => beside(2),
            Ratio::TwoToOne => report
                .path(paths::IN_PROCESS, 1)
                .filter(|one| is_long(one))
                .and(gain)
                .map(|gain| gain.ratio_to_one.median),
            Ratio::FirstToP50 => report.path(paths::IN_PROCESS, 1).map(|one| one.first_to_p50),
            Ratio::PrepareToLiteRt => found.prepare_to_litert.map(|ratio| ratio.median),
            Ratio::IdleToExecuted => found.idle.map(|idle| idle.heap_to_executed),
        };
        Check::new(self.name(found.class), ratio)
    }
}

/// Reads bounds for models, such as `benches/model.json`.
///
/// # Errors
/// As [`Bounds::read`].
pub fn bounds(path: &Path) -> Result<Bounds, HarnessError> {
    let names = Class::ALL.iter().flat_map(|class| Ratio::ALL.map(|ratio| ratio.name(*class)));
    Bounds::read(path, &names.collect::<Vec<String>>())
}

impl Compared {
    /// What was measured of one model.
    #[must_use]
    pub fn new(
        workload: &Workload,
        series: &[Series],
        idle: Option<Idle>,
        not_comparable: Option<String>,
    ) -> Compared {
        let (report, class) = (ModelReport::new(workload, series, None), Class::of(workload));
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
        let ours = find(paths::IN_PROCESS, 1);
        let reference = find(REFERENCE, 1).zip(ours);
        let prepare_to_litert = ours
            .zip(find(LITERT, 1))
            .and_then(|(ours, theirs)| ratio_by_round(&ours.prepares, &theirs.prepares));
        let mut found = Compared {
            checks: Vec::new(),
            class,
            ours_to_litert: ours_to_litert.collect(),
            prepare_to_litert,
            idle,
            wrong: correct::wrong(workload, &report),
            reference_to_ours: reference.and_then(|(slow, fast)| ratio(slow, fast)),
            outputs: report.paths.iter().find(|path| path.path == LITERT).map(|path| path.outputs),
            two_lines_ns: None,
            not_comparable,
            report,
        };
        found.checks = Ratio::ALL.map(|ratio| ratio.of(&found)).to_vec();
        found
    }

    /// The ratio to LiteRT, for so many threads.
    #[must_use]
    pub fn to_litert(&self, threads: u32) -> Option<&Spread> {
        self.ours_to_litert.iter().find(|one| one.threads == threads).map(|one| &one.ratio)
    }

    fn named_checks(&self) -> impl Iterator<Item = (&str, &Check)> {
        self.checks.iter().map(|check| (self.report.model.as_str(), check))
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
            self.to_litert(2).map_or_else(dash, spread),
            gain.map_or_else(dash, |gain| spread(&gain.ratio_to_one)),
            self.two_lines_ns.map_or_else(dash, |lines| format!("{} ns", lines.text(0))),
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
const NUMBERS: [&str; 10] = [
    "ours",
    "LiteRT",
    "ours : LiteRT",
    "2 threads, ours : LiteRT",
    "ours, 2 threads : 1",
    "two lines",
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
        paper.table(&self.around())?;
        let checks = self.check_table();
        if !checks.is_empty() {
            paper.table(&checks)?;
        }
        let bullet = if paper.format == Format::Markdown { "- " } else { "" };
        self.write_remarks(paper.out, bullet)
    }

    fn figures(&self) -> Table {
        figures_of(self.models.iter().map(|model| &model.report))
    }

    fn page(&self, machine: &Machine, rounds: u32) -> Result<String, HarnessError> {
        let models = self.models.iter().map(|model| model.report.clone()).collect();
        let client_memory_kib = peak_memory_kib(std::process::id());
        let found = ModelsReport { wait: self.wait.name().to_owned(), models, client_memory_kib };
        let tables = [self.table(), self.around()];
        page_of(&found, "Our driver beside LiteRT", &tables, (machine, rounds))
    }
}

impl Comparison {
    /// Holds every model to these bounds.
    pub fn hold_to(&mut self, bounds: &Bounds) {
        for model in &mut self.models {
            bounds.hold(&mut model.checks);
        }
    }

    /// Whether a model does not keep to its bounds, or outputs are wrong.
    #[must_use]
    pub fn has_missed(&self) -> bool {
        self.models.iter().any(|model| !model.wrong.is_empty())
            || checks::has_missed(self.models.iter().flat_map(|model| &model.checks))
    }

    /// What models are held to, where they are.
    fn check_table(&self) -> Table {
        checks::table(self.models.iter().flat_map(Compared::named_checks))
    }

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

    /// What lies around executions.
    fn around(&self) -> Table {
        around::table(self.models.iter().map(|model| Around {
            report: &model.report,
            prepare_to_litert: model.prepare_to_litert,
            idle: model.idle.as_ref(),
        }))
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
    remarks.extend(model.wrong.iter().map(|wrong| format!("{name}: {wrong}.")));
    remarks
}

fn spread(spread: &Spread) -> String {
    spread.text(2)
}
