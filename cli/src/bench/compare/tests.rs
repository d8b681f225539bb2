//! Runs that are made up: models whose executions take what a subject claims, through the harness and its
//! JSON, so that no clock is looked at.

use std::time::Duration;

use burst_harness::HarnessError;
use burst_harness::engine::{Length, Subject, Times};
use burst_harness::machine::Machine;
use burst_harness::model::{
    Executions, Label, ModelReport, ModelSubject, ModelsReport, Options, Report as BenchReport,
    Workload, measure,
};

use super::*;
use crate::model_file;

/// Executions of a driver that takes about `usual_ns`, `slowdown` times as long as it should.
struct MadeUp {
    label: Label,
    usual_ns: f64,
    slowdown: f64,
    noise: Noise,
}

/// Numbers that look random and are the same each time.
struct Noise(u64);

impl Noise {
    /// Evenly from 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }
}

impl ModelSubject for MadeUp {
    fn label(&self) -> &Label {
        &self.label
    }
}

impl Subject for MadeUp {
    type Trial = Executions;

    fn context(&self) -> String {
        self.label.to_string()
    }

    /// Rounds differ by some percent, one in eight by half; executions by a tenth, one in twenty by ten times.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some microseconds"
    )]
    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        let moved = if self.noise.next() < 0.125 { 1.5 } else { 1.0 };
        let of_round =
            self.usual_ns * self.slowdown * moved * (1.0 + 0.04 * (self.noise.next() - 0.5));
        let one = |_| {
            let far_out = if self.noise.next() < 0.05 { 10.0 } else { 1.0 };
            (of_round * far_out * (1.0 + 0.1 * self.noise.next())) as u64
        };
        let times = Times::new((0..length.counted).map(one).collect());
        Ok(Executions { first: Duration::from_micros(300), times, ..Executions::default() })
    }
}

/// What `burst bench model --json` would print of a driver that is so much slower than it should be.
fn run_of(slowdown: f64, seed: u64, rounds: u32) -> String {
    let (name, bytes) = model_file::read(None).unwrap();
    let workload = Workload::of_bytes(&name, &bytes).unwrap();
    let subject = |(at, path): (u64, &str)| -> Box<dyn ModelSubject> {
        let noise = Noise(seed.wrapping_mul(7919).wrapping_add(at));
        Box::new(MadeUp { label: Label::new(path, 1), usual_ns: 120e3, slowdown, noise })
    };
    let subjects = (0..).zip(["in-process", "burst"]).map(subject).collect();
    let options = Options { rounds, executions: Some(50) };
    let series = measure(subjects, &options, &mut |_, _| {}).unwrap();
    let models = vec![ModelReport::new(&workload, &series, None)];
    let machine = Machine {
        processor: "made up".into(),
        cpus: 2,
        kernel: "6.1".into(),
        clock_step_ns: 20,
        load: 0.5,
        keep_awake: "permitted".into(),
        began: String::new(),
        version: String::new(),
        command: String::new(),
    };
    let found = ModelsReport { wait: "spin".into(), models, client_memory_kib: None };
    let report = BenchReport { machine, rounds, found };
    json::object(&json::BENCH_MODEL, &report).unwrap()
}

fn compared(a: &str, b: &str) -> Report {
    let read = |name, text| RunFile::of_text(name, text).unwrap();
    Report::of(&read("a.json", a), &read("b.json", b), 5.0).unwrap()
}

const RUNS: u64 = 30;
const ROUNDS: u32 = 25;

#[test]
fn a_driver_that_is_ten_percent_slower_is_found_and_one_that_is_ten_percent_faster_too() {
    for seed in 0..RUNS {
        let (before, after) = (run_of(1.0, seed, ROUNDS), run_of(1.1, seed + 1000, ROUNDS));
        let slower = compared(&before, &after);
        assert_eq!((slower.rows.len(), slower.slower), (2, 2), "{seed}: {slower:#?}");
        let faster = compared(&after, &before);
        assert_eq!((faster.slower, faster.faster), (0, 2), "{seed}: {faster:#?}");
    }
}

#[test]
fn between_two_runs_of_the_same_driver_nothing_is_found() {
    let mut unclear = 0;
    for seed in 0..RUNS {
        let found = compared(&run_of(1.0, seed, ROUNDS), &run_of(1.0, seed + 1000, ROUNDS));
        assert_eq!((found.slower, found.faster), (0, 0), "{seed}: {found:#?}");
        unclear += found.unclear;
    }
    assert!(unclear * 10 < usize::try_from(RUNS).unwrap() * 2, "{unclear} of {}", 2 * RUNS);
}

#[test]
fn too_few_rounds_tell_nothing() {
    let found = compared(&run_of(1.0, 1, 3), &run_of(2.0, 2, 3));
    assert_eq!((found.slower, found.unclear), (0, 2), "{found:#?}");
    assert!(found.rows.iter().all(|row| row.ratio.is_none()), "{found:#?}");
    let text = found.sheet().csv();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "what,unit,A,A min,A max,B,B min,B max,B/A,B/A low,B/A high,verdict");
    assert!(lines[1].ends_with(",,,,unclear"), "{text}");
    let cells: Vec<&str> = lines[1].rsplit(',').collect();
    assert!(cells[4..10].iter().all(|cell| cell.parse::<f64>().is_ok()), "numbers alone: {text}");
}

#[test]
fn runs_over_a_data_set_are_compared_by_their_windows() {
    let run = |us: f64| {
        let windows: Vec<f64> = (0..10).map(|at| us + f64::from(at) / 10.0).collect();
        let mut object: serde_json::Value = serde_json::from_str(&run_of(1.0, 1, 3)).unwrap();
        object["command"] = "bench mlts".into();
        object["threads"] = 2.into();
        object["models"] = serde_json::json!([{ "model": "m", "task": null, "paths": [
            { "path": "burst", "windows_p50_us": windows, "is_stable": true },
            { "path": "sync", "windows_p50_us": [], "is_stable": false },
        ] }]);
        object
    };
    let found = compared(&run(100.0).to_string(), &run(150.0).to_string());
    assert_eq!((found.rows.len(), found.slower), (1, 1), "{found:#?}");
    assert_eq!((&*found.rows[0].name, found.rows[0].unit), ("m burst, 2 threads", "us"));
    let mut nothing = run(100.0);
    nothing["models"][0]["paths"][0]["windows_p50_us"] = serde_json::json!([]);
    let said = RunFile::of_text("x.json", &nothing.to_string()).unwrap_err().to_string();
    assert!(said.contains("--windows"), "{said}");
    let other = RunFile::of_text("b.json", &run_of(1.0, 1, 3)).unwrap();
    let mlts = RunFile::of_text("a.json", &run(1.0).to_string()).unwrap();
    let said = Report::of(&mlts, &other, 5.0).unwrap_err().to_string();
    assert_eq!(said, "a.json is of burst bench mlts, b.json of burst bench model");
}

#[test]
fn a_verdict_needs_the_whole_interval_on_one_side_of_the_threshold() {
    let of = |low, high| Verdict::of(Some(Interval { ratio: 1.0, low, high }), 5.0);
    assert_eq!(of(1.06, 1.2), Verdict::Slower);
    assert_eq!(of(1.04, 1.2), Verdict::Unclear);
    assert_eq!(of(0.96, 1.05), Verdict::Same);
    assert_eq!(of(0.5, 0.95), Verdict::Faster);
    assert_eq!(of(0.5, 2.0), Verdict::Unclear);
    assert_eq!(Verdict::of(None, 5.0), Verdict::Unclear);
}

#[test]
fn machines_and_rows_that_differ_are_told() {
    let a = run_of(1.0, 1, 4);
    let b = a
        .replace("made up", "another one")
        .replace("\"load\":0.5", "\"load\":7.5")
        .replace("\"in-process\"", "\"socket\"");
    let found = compared(&a, &b);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    assert!(found.only_in_a[0].ends_with("in-process, 1 thread"), "{found:#?}");
    assert!(found.only_in_b[0].ends_with("socket, 1 thread"), "{found:#?}");
    let [processor, load] = &found.warnings[..] else { panic!("{found:#?}") };
    assert!(processor.contains("made up in A, another one in B"), "{processor}");
    assert!(load.contains("0.5 in A, 7.5 in B"), "{load}");
}

#[test]
fn what_cannot_be_compared_is_named() {
    let good = run_of(1.0, 1, 4);
    let transport = good
        .replace("\"bench model\"", "\"bench transport\"")
        .replace("\"models\":[", "\"rows\":[],\"models\":[");
    let nothing = |text: &str| text.replace("\"rounds_p50_us\":[", "\"of_old\":[");
    let said = |text: &str| match RunFile::of_text("x.json", text) {
        Err(error) => failure::error_text(&error),
        Ok(run) => format!("{run:?}"),
    };
    for (text, part) in [
        ("{", "x.json is not what `burst bench --json` prints"),
        ("[1]", "x.json is not what"),
        (r#"{"command":"stream"}"#, "it is of stream"),
        (r#"{"command":"bench model","error":"no"}"#, "of a run that failed: no"),
        (r#"{"command":"bench model","models":[]}"#, "names no machine"),
        (&nothing(&good), "measure again with this version"),
        (&good.replace("\"rounds_p50_us\":[", "\"rounds_p50_us\":[0.0,"), "measure again"),
    ] {
        assert!(said(text).contains(part), "{part}: {}", said(text));
    }
    let read = |text: &str| RunFile::of_text("x.json", text).unwrap();
    let mixed = Report::of(&read(&good), &read(&transport), 5.0).unwrap_err();
    assert!(mixed.to_string().contains("is of burst bench model"), "{mixed}");
    let others = good.replace("\"in-process\"", "\"p\"").replace("\"burst\"", "\"q\"");
    let nothing = Report::of(&read(&good), &read(&others), 5.0).unwrap_err();
    assert!(nothing.to_string().contains("have nothing in common"), "{nothing}");
}
