//! `burst bench compare` on two runs of one driver, the second of which has a slowdown injected, or none: a device that
//! lets time pass, or computes for so long, is measured by the harness, and what that found is compared by the command.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "some thousand steps"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, PrepareOptions,
    PrepareResult, PreparedModel, Request, RequestArgument,
};
use burst_harness::machine::Machine;
use burst_harness::model::{
    InProcess, Label, ModelReport, ModelSubject, ModelsReport, Options, Report, Workload, measure,
};
use burst_testing::Missing;
use serde_json::Value;

use crate::support::{json, repository, run};

burst_testing::tests![
    a_slowdown_of_ten_percent_in_a_driver_is_found_and_between_two_runs_of_one_nothing(),
    by_a_clock_of_the_machine_the_same_is_found(Measured::asked()?),
];

/// That times may be looked at: little else runs here.
struct Measured(());

impl Measured {
    fn asked() -> Result<Measured, Missing> {
        let missing = || {
            Missing::new("a machine that has little else to do, as it measures: BURST_MEASURE=1")
        };
        std::env::var_os("BURST_MEASURE").map(|_| Measured(())).ok_or_else(missing)
    }
}

/// How a driver lets time pass.
#[derive(Clone)]
enum Passing {
    /// It moves a clock that the harness looks at, by about so much: the seed says by how much each time.
    Moved { now_ns: Arc<AtomicU64>, seed: Arc<AtomicU64> },
    /// It computes: so many steps in a microsecond, where nothing else does.
    Computed { steps_per_us: f64 },
}

impl Passing {
    fn moved(seed: u64) -> Passing {
        let seed = Arc::new(AtomicU64::new(seed));
        Passing::Moved { now_ns: Arc::default(), seed }
    }

    fn computed() -> Passing {
        const STEPS: u64 = 100_000;
        let took = (0..50).map(|_| {
            let begun = computed_for();
            compute(STEPS);
            (computed_for() - begun).as_secs_f64() * 1e6
        });
        Passing::Computed { steps_per_us: STEPS as f64 / took.fold(f64::MAX, f64::min) }
    }

    /// Evenly from 0 up to 1, the same each time; without a seed always in the middle.
    fn noise(&self) -> f64 {
        let Passing::Moved { seed, .. } = self else { return 0.5 };
        let next = |seed: u64| {
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
        };
        // Relaxed: one thread uses it.
        let was = seed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |seed| Some(next(seed)));
        f64::from(u32::try_from(next(was.unwrap()) >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn pass(&self, time: Duration) {
        match self {
            Passing::Moved { now_ns, .. } => {
                let ns = u64::try_from(time.as_nanos()).unwrap();
                now_ns.fetch_add(ns, Ordering::Relaxed);
            }
            Passing::Computed { steps_per_us } => {
                compute((time.as_secs_f64() * 1e6 * steps_per_us) as u64);
            }
        }
    }
}

/// So many steps, each of which needs the one before.
fn compute(steps: u64) {
    let mut value = std::hint::black_box(steps);
    for step in 0..steps {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
    }
    std::hint::black_box(value);
}

/// A driver that writes nothing but zeros, and takes so long over it.
#[derive(Clone)]
struct Timed {
    takes: Duration,
    passing: Passing,
}

impl Device for Timed {
    fn name(&self) -> &str {
        "timed"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    /// Rounds, each of which prepares the model anew, differ by some percent, one in eight by half.
    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        let passing = self.passing.clone();
        let moved = if passing.noise() < 0.125 { 1.5 } else { 1.0 };
        let of_round = moved * (1.0 + 0.04 * (passing.noise() - 0.5));
        let of_round = if matches!(passing, Passing::Moved { .. }) { of_round } else { 1.0 };
        let takes = self.takes.mul_f64(of_round);
        Ok(Arc::new(Timed { takes, passing }))
    }
}

impl PreparedModel for Timed {
    /// Executions differ by a tenth, one in twenty by ten times.
    fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
        let far_out = if self.passing.noise() < 0.05 { 10.0 } else { 1.0 };
        let about = 1.0 + 0.1 * (self.passing.noise() - 0.5);
        self.passing.pass(self.takes.mul_f64(far_out * about));
        let zeros = |(index, output): (usize, &RequestArgument)| {
            request.write_output(index, &vec![0; output.location.length as usize])
        };
        let done: Result<(), Failure> = request.outputs.iter().enumerate().try_for_each(zeros);
        ExecutionResult::of(done.err().map_or(ErrorStatus::None, |failure| failure.status))
    }
}

/// What every execution takes: shorter than what a scheduler gives a thread at a time, so that few are
/// interrupted where something else runs all the same.
const USUAL: Duration = Duration::from_micros(400);

/// How long this thread has computed: what else the machine does meanwhile counts little.
fn computed_for() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Measures a driver that is so much slower than it should be, and writes what `burst bench model --json` would print.
fn measured(passing: &Passing, slowdown: f64, to: &Path) {
    let workload = Workload::read(&repository().join("models/shapes.tflite")).unwrap();
    let (takes, passing) = (USUAL.mul_f64(slowdown), passing.clone());
    let device = Timed { takes, passing: passing.clone() };
    let subject = InProcess::new(Label::new("in-process", 1), Arc::new(device), &workload);
    let subject = match passing {
        Passing::Moved { now_ns, .. } => subject
            .with_clock(Arc::new(move || Duration::from_nanos(now_ns.load(Ordering::Relaxed)))),
        Passing::Computed { .. } => subject.with_clock(Arc::new(computed_for)),
    };
    let subjects: Vec<Box<dyn ModelSubject>> = vec![Box::new(subject)];
    let options = Options { rounds: 25, executions: Some(100) };
    let series = measure(subjects, &options, &mut |_, _| {}).unwrap();
    let models = vec![ModelReport::new(&workload, &series, None)];
    let found = ModelsReport { wait: "spin".into(), models, client_memory_kib: None };
    let report = Report { machine: Machine::detect(), rounds: options.rounds, found };
    let mut object = serde_json::to_value(&report).unwrap();
    object["command"] = "bench model".into();
    std::fs::write(to, object.to_string()).unwrap();
}

/// What the command says of two files: its status, and the one row.
fn compared(a: &Path, b: &Path) -> (Option<i32>, Value) {
    let output = run(&["bench", "compare", a.to_str().unwrap(), b.to_str().unwrap(), "--json"]);
    let report = json(&output);
    assert_eq!(report["rows"].as_array().unwrap().len(), 1, "{report:#}");
    (output.status.code(), report["rows"][0].clone())
}

/// Measures a driver twice, and once with ten percent more: what is found between the first and each of the others.
fn runs(folder: &Path, passings: &[Passing; 3]) -> [(Option<i32>, Value); 2] {
    let files: [PathBuf; 3] = ["a", "same", "slower"].map(|name| folder.join(name));
    for ((passing, slowdown), file) in passings.iter().zip([1.0, 1.0, 1.1]).zip(&files) {
        measured(passing, slowdown, file);
    }
    [compared(&files[0], &files[1]), compared(&files[0], &files[2])]
}

/// The harness looks at a clock that the driver moves: what is found is the same on every machine.
fn a_slowdown_of_ten_percent_in_a_driver_is_found_and_between_two_runs_of_one_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..5 {
        let passings = [1, 2, 3].map(|run| Passing::moved(seed * 1000 + run * 7919));
        let [(status, same), (failed, slower)] = runs(folder.path(), &passings);
        assert_eq!((status, &same["verdict"]), (Some(0), &"same".into()), "{seed}: {same:#}");
        assert_eq!((failed, &slower["verdict"]), (Some(1), &"slower".into()), "{seed}: {slower:#}");
        let ratio = slower["ratio"]["ratio"].as_f64().unwrap();
        assert!((ratio - 1.1).abs() < 0.03, "{slower:#}");
    }
}

/// The driver computes, and a tenth more.
fn by_a_clock_of_the_machine_the_same_is_found(_: Measured) {
    let folder = tempfile::tempdir().unwrap();
    for turn in 1..=5 {
        let passing = Passing::computed();
        let passings = [passing.clone(), passing.clone(), passing];
        let [(_, same), (_, slower)] = runs(folder.path(), &passings);
        for row in [&same, &slower] {
            println!("{turn}: {} of {}, {}", row["verdict"], row["ratio"], row["rounds"]);
        }
        assert_eq!(same["verdict"], "same", "{same:#}");
        assert_eq!(slower["verdict"], "slower", "{slower:#}");
    }
}
