//! `burst verify --random`: models that nobody wrote, judged by the interpreter.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use burst_driver::{CacheKey, CpuDevice, DeviceOptions, Engine, Isa, ReferenceDevice};
use burst_hal::OperationType;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_harness::report::{Column, Table};
use burst_verify::judging::{
    Lane, MIN_OCCURRENCES, RandomFinding, RandomPlan, RandomReport, Way, run_random_into,
};
use burst_verify::random::Class;
use burst_verify::{DeviceLease, RunError, Target};

use super::lease::{RemoteLease, Service};
use super::{Args, Said, operation, progress_bar};
use crate::device_names;
use crate::failure;
use crate::json::{self, Ending};
use crate::out::{columns, counted};
use crate::route::RouteArg;
use crate::signals;

/// Findings that are written out; all of them are in the JSON object.
const MAX_FINDINGS: usize = 40;
/// Threads of the lane with several: with two, the parts of an output are always of one length.
const THREADS: usize = 3;

/// Which random models.
#[derive(clap::Args)]
pub(super) struct RandomArgs {
    /// So many random models of each class, made from seeds, judged by the plain interpreter: operation by
    /// operation, and at the end. Integers, quantized values and truth values have to be its bits; floats, which a
    /// device may round otherwise, are judged with the tolerance of their operation, or of a graph of this size.
    /// Every route, three threads and a compilation from files have to give the same bits as one thread in
    /// process; so have other sets of instructions, but for floats, which are judged with the tolerance again.
    #[arg(long, value_name = "N", conflicts_with_all = ["folder", "models", "suite", "one_in", "library"], value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,
    /// With --random: the first seed; a model that failed is made again by its own with --random 1.
    #[arg(long, value_name = "S", default_value_t = 0, requires = "random")]
    seed: u64,
    /// With --random: only these classes of models, of one operation, of 5 and of 40.
    #[arg(long, value_enum, value_name = "CLASS", value_delimiter = ',', requires = "random")]
    class: Vec<ClassArg>,
    /// With --random: folder for models that fail, made as small as they still fail: vector files, which
    /// `burst run` takes.
    #[arg(long, value_name = "DIR", default_value = "random-failures", requires = "random")]
    failures: PathBuf,
    /// With --random: end with the first model that fails.
    #[arg(long, requires = "random")]
    fail_fast: bool,
}

impl RandomArgs {
    /// How many models of each class, where random ones are meant.
    pub(super) fn models(&self) -> Option<u64> {
        self.random
    }
}

/// How large models are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClassArg {
    /// One operation, dimensions up to 1,000.
    Single,
    /// Five operations.
    Small,
    /// Forty operations.
    Large,
}

impl ClassArg {
    fn class(self) -> Class {
        match self {
            ClassArg::Single => Class::Single,
            ClassArg::Small => Class::Small,
            ClassArg::Large => Class::Large,
        }
    }
}

/// Judges random models and says what came of them.
pub(super) fn run(args: &Args, models: u64) -> Result<ExitCode> {
    if args.is_ndk() {
        bail!("--mode ndk goes with a folder of vectors");
    }
    let plan = plan(args, models)?;
    let judge = ReferenceDevice::default();
    let total = models * plan.classes.len() as u64;
    let workers = args.workers(usize::try_from(total).unwrap_or(usize::MAX));
    let service = Service {
        socket: args.socket.as_deref(),
        device: &args.device,
        threads: args.threads,
        tracing: None,
    };
    let opener = Opener { args, service: &service };
    let bar = progress_bar(total, "models", args.json);
    let failed = AtomicU64::new(0);
    let progress = |has_failed: bool| {
        let more = u64::from(has_failed);
        let failed = failed.fetch_add(more, Ordering::Relaxed) + more;
        bar.set_message(format!("{failed} failed"));
        bar.inc(1);
    };
    let shape = args.json.then_some(&json::VERIFY);
    let judged = Arc::new(Judged { report: Mutex::new(None), threads: args.threads_used() });
    let started = Instant::now();
    let (ending, shown) = (Arc::clone(&judged), bar.clone());
    // A model may take longer to judge, and a finding to be made small, than who sends a signal waits.
    signals::end_with(shape, move || {
        shown.finish_and_clear();
        ending.summary(started.elapsed())
    })?;
    let ended =
        run_random_into(&judged.report, &plan, &judge, workers, || opener.lanes(), progress);
    bar.finish_and_clear();
    let (said, text) = judged.summary(started.elapsed());
    let Some(report) = &said.report else {
        ended?;
        bail!("there was no model to judge");
    };
    let error = ended.err().map(anyhow::Error::from);
    let why = error.as_ref().map(failure::error_text);
    let mut out = crate::out::stdout();
    if let Some(shape) = shape {
        let ending = Ending { error: why.as_deref(), interrupted: None };
        writeln!(out, "{}", json::ended(shape, &said, ending)?)?;
    } else {
        writeln!(out, "{text}")?;
    }
    if let Some(why) = why {
        if shape.is_none() {
            crate::out::say(format_args!("burst: {why}"));
        }
        return Ok(ExitCode::from(failure::COULD_NOT));
    }
    let is_full = plan.ops.is_empty() && report.is_full();
    let is_sound =
        report.is_sound() && report.passed > 0 && !(is_full && report.rare().next().is_some());
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

/// Models that were judged so far.
struct Judged {
    /// There from the first of them on.
    report: Mutex<Option<RandomReport>>,
    threads: Option<u32>,
}

impl Judged {
    /// What is said of them, as JSON and as text, however the run ends.
    fn summary(&self, took: Duration) -> (Said<Option<RandomReport>>, String) {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = Vec::new();
        if let Some(report) = &report {
            // Memory takes all.
            let _ = write_text(&mut text, report, took);
        }
        let text = String::from_utf8_lossy(&text).trim_end().to_owned();
        (Said { report, threads: self.threads, plans: None }, text)
    }
}

fn plan(args: &Args, models: u64) -> Result<RandomPlan> {
    let RandomArgs { seed, class, failures, fail_fast, .. } = &args.random;
    let named = |name: &String| {
        let name = operation(name)?;
        OperationType::from_name(&name).ok_or_else(|| anyhow::anyhow!("--op {name}: no operation"))
    };
    let mut classes: Vec<Class> = class.iter().map(|class| class.class()).collect();
    classes.sort_unstable();
    classes.dedup();
    Ok(RandomPlan {
        seed: *seed,
        models,
        classes: if classes.is_empty() { Class::ALL.to_vec() } else { classes },
        ops: args.op.iter().map(named).collect::<Result<_>>()?,
        failures: Some(failures.clone()),
        is_over_at_first: *fail_fast,
    })
}

/// Opens the lanes of a worker.
struct Opener<'a> {
    args: &'a Args,
    service: &'a Service<'a>,
}

impl<'a> Opener<'a> {
    fn lanes(&self) -> Result<Vec<Lane<'a>>, RunError> {
        let mut lanes = Vec::new();
        if self.args.socket.is_none() && self.wants(RouteArg::InProcess) {
            self.in_process(&mut lanes)?;
        }
        for route in [RouteArg::Sync, RouteArg::Async, RouteArg::Burst, RouteArg::Fenced] {
            if self.wants(route) {
                lanes.push(Lane {
                    name: route.name().to_owned(),
                    lease: Box::new(RemoteLease::open(self.service)?),
                    way: Way::Route(route.route()),
                    may_round_otherwise: false,
                });
            }
        }
        Ok(lanes)
    }

    fn wants(&self, route: RouteArg) -> bool {
        self.args.mode.is_empty() || self.args.wants(route)
    }

    /// The CPU device in this process: alone, with more threads, from files, with fewer instructions.
    fn in_process(&self, lanes: &mut Vec<Lane<'a>>) -> Result<(), RunError> {
        let wrong = |error: anyhow::Error| RunError::Device(error.into());
        let variant = device_names::variant(self.service.device).map_err(wrong)?;
        let device = |threads, isa| {
            let options = DeviceOptions { threads, isa, ..DeviceOptions::default() };
            CpuDevice::of(&Arc::new(Engine::new(options)), variant)
        };
        let here = Isa::detect();
        let mut add = |name: String, device: CpuDevice, way: Option<Way>, may_round_otherwise| {
            let way = way.unwrap_or(Way::Route(burst_hal::Route::Synchronous));
            let lease = Box::new(InProcess(device, Arc::new(HeapAllocator)));
            lanes.push(Lane { name, lease, way, may_round_otherwise });
        };
        add("in process".to_owned(), device(1, here), None, false);
        add(format!("{THREADS} threads"), device(THREADS, here), None, false);
        let keeping = device(1, here).with_cache_key(CacheKey::new([0x4b; CacheKey::BYTES]));
        add("from files".to_owned(), keeping, Some(Way::Cached), false);
        for isa in Isa::each_here().filter(|isa| *isa != here) {
            add(instructions(isa).to_owned(), device(1, isa), None, true);
        }
        Ok(())
    }
}

fn instructions(isa: Isa) -> &'static str {
    match isa {
        Isa { vnni: true, .. } => "AVX-512 with VNNI",
        Isa { avx512: true, .. } => "AVX-512",
        Isa { avx_vnni: true, .. } => "AVX-VNNI",
        Isa { avx2: true, .. } => "AVX2",
        Isa { i8mm: true, .. } => "NEON with I8MM",
        Isa { dotprod: true, .. } => "NEON with DotProd",
        Isa { neon: true, .. } => "NEON",
        _ => "portable instructions",
    }
}

/// A device in this process.
struct InProcess(CpuDevice, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &self.1 }
    }
}

fn write_text(out: &mut impl Write, report: &RandomReport, took: Duration) -> std::io::Result<()> {
    let numbers = ["operations", "elements", "skipped"].map(Column::number);
    let mut table = Table::new([&[Column::text("form")][..], &numbers].concat());
    for (form, counts) in report.forms.iter().filter(|(_, counts)| counts.occurrences > 0) {
        let numbers = [counts.occurrences, counts.elements, counts.skipped];
        let [occurrences, elements, skipped] = numbers.map(|number| number.to_string());
        table.add([form.to_owned(), occurrences, elements, skipped]);
    }
    writeln!(out, "{}", table.fitted(columns()))?;
    for (form, occurrences) in report.rare() {
        writeln!(out, "rare: {form}, {}", counted(occurrences, "operation"))?;
    }
    let seldom = report.variants.values().filter(|count| **count < MIN_OCCURRENCES).count();
    writeln!(
        out,
        "{} by rank and left out operands, {seldom} of them in fewer than {MIN_OCCURRENCES} operations",
        counted(report.variants.len() as u64, "variant")
    )?;
    for form in report.skipping() {
        writeln!(out, "too many elements skipped: {form}")?;
    }
    for finding in report.findings.iter().take(MAX_FINDINGS) {
        write_finding(out, finding)?;
    }
    if let Some(more) = report.findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
        writeln!(out, "and {more} more; --json says all")?;
    }
    writeln!(out, "lanes: {}", report.lanes.join(", "))?;
    let RandomReport { models, passed, failed, unsupported, executions, .. } = report;
    writeln!(
        out,
        "{} from seed {}: {passed} passed, {failed} failed, {unsupported} not supported; {} in {:.1} s",
        counted(*models, "random model"),
        report.seed,
        counted(*executions, "execution"),
        took.as_secs_f64()
    )?;
    if passed + failed == 0 {
        writeln!(out, "nothing was verified: the device supports none of these models")?;
    }
    writeln!(
        out,
        "{} not over fences (outputs of unknown size), {} with other bits of floats by other \
         instructions, {} judged with inputs of their own",
        report.inapplicable,
        report.rounded_otherwise,
        counted(report.retaken, "operation")
    )
}

fn write_finding(out: &mut impl Write, finding: &RandomFinding) -> std::io::Result<()> {
    let RandomFinding { class, seed, lane, what, operations, file, .. } = finding;
    let name = class.name();
    writeln!(out, "{name} {seed}, {lane}: {what} ({})", operations.join(", "))?;
    let op = finding.only.map_or_else(String::new, |op| format!(" --op {op}"));
    writeln!(out, "  again: burst verify --random 1 --seed {seed} --class {name}{op}")?;
    match file {
        Some(file) => writeln!(out, "  made small: burst run {} --output DIR", file.display()),
        None => Ok(()),
    }
}
