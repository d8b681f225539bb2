//! What is drawn: in a terminal, in a narrow one, without colours.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::process::Command;

use crate::support::{Service, burst, repository, run, terminal::Session};
use crate::{mlts, verify, verify_models};

burst_testing::tests![
    tables_fit_a_narrow_terminal(),
    wide_tables_fit_too_and_break_no_word(),
    tables_of_what_is_measured_and_verified_fit_too(),
    a_control_that_is_not_there_is_not_called_forbidden(),
    rounds_that_count_are_told_in_words(),
    frames_that_are_dropped_are_shown_and_count_as_progress(),
    no_colour_is_asked_for_by_a_variable(),
    one_frame_is_not_called_frames(),
];

fn tables_fit_a_narrow_terminal() {
    for columns in [60, 80] {
        let session = Session::run(burst(&["stream", "--frames", "20"]), columns);
        assert!(session.status.success(), "{session:?}");
        let lines = session.lines();
        let of_table = |line: &&String| {
            ["microseconds", "latency", "in the driver", "transport"]
                .iter()
                .any(|row| line.contains(row))
        };
        let table: Vec<&String> = lines.iter().filter(of_table).collect();
        assert_eq!(table.len(), 4, "a line each: {lines:?}");
        for line in table {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
    }
}

/// Tables of more columns than sixty characters have room for, each with words of it that stay whole.
fn wide_tables_fit_too_and_break_no_word() {
    let service = Service::start();
    let devices = ["devices", "--socket", service.path()];
    let model = ["bench", "model", "--rounds", "1", "--executions", "2", "--threads", "1"];
    let transport = ["bench", "transport", "--quick", "--no-strace", "--no-frames"];
    let of_it = ["--sizes", "64", "--wait", "sleep", "--placement", "unpinned", "--peers", "ours"];
    let transport = [&transport[..], &of_it].concat();
    let random = ["verify", "--random", "1", "--jobs", "1"];
    let divided = ["explain", "--devices", "cpu,nnapi-reference"];
    for (args, words) in [
        (&["explain"][..], &["DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "the device"][..]),
        (&divided, &["DEPTHWISE_CONV_2D", "nnapi-reference", "operations"]),
        (&devices, &["version", "AVAILABLE", "float32"]),
        (&model, &["burst-client-outputs", "executions 2", "outputs in memory"]),
        (&transport, &["floor-futex", "p50 : floor", "calls/msg"]),
        (&random, &["operations", "elements"]),
    ] {
        assert_fits(burst(args), args, words);
    }
}

/// Asserts that tables of a command fit sixty columns, with these words whole in them.
#[track_caller]
fn assert_fits(command: Command, args: &[&str], words: &[&str]) {
    let session = Session::run(command, 60);
    assert!(session.status.success(), "{args:?}: {session:?}");
    let lines = session.lines();
    for word in words {
        assert!(lines.iter().any(|line| line.contains(word)), "{args:?}: {word}: {lines:#?}");
    }
    // A frame, or a paragraph below its heading.
    let of_table = |line: &&String| line.starts_with(['│', '├', '┌', ' ']);
    let widest = lines.iter().filter(of_table).map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 60), "{args:?}: {lines:#?}");
}

fn tables_of_what_is_measured_and_verified_fit_too() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = folder.path().join("vectors");
    verify::write_right(&vectors, "a");
    let goldens = folder.path().join("goldens");
    verify_models::write(&goldens);
    let data = mlts::data(2);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (vectors, goldens, data) = (text(&vectors), text(&goldens), text(data.path()));
    let calibration = text(&folder.path().join("calibration.json"));
    let model = text(&repository().join("models/shapes.tflite"));
    let answers = ["bench", "mlts", &model, "--data", &data, "--windows", "2"];
    let profile = ["bench", "model", "--profile", "--rounds", "1", "--executions", "2"];
    for (args, words) in [
        (&["verify", &vectors][..], &["RELU", "DYNAMIC_SHAPE", "1 test: 1 passed"][..]),
        (&["verify", "--models", &goldens], &["shapes", "strict", "largest difference"]),
        (&["calibrate", "--rounds", "1", "--output", &calibration], &["workload", "reference"]),
        (&answers, &["in-process", "fenced"]),
        (&[&profile[..], &["--threads", "1"]].concat(), &["DEPTHWISE_CONV_2D", "in-process"]),
    ] {
        assert_fits(burst(args), args, words);
    }
    let file = |name: &str| {
        let file = folder.path().join(name);
        let args = ["bench", "model", "--rounds", "3", "--executions", "2", "--threads", "1"];
        std::fs::write(&file, run(&[&args[..], &["--json"]].concat()).stdout).unwrap();
        text(&file)
    };
    let args = ["bench", "compare", &file("a.json"), &file("b.json"), "--threshold", "1000"];
    assert_fits(burst(&args), &args, &["in-process", "burst-client-outputs"]);
}

/// What the service says at its start of the levers that it may use, in every form of its log: a control that is not
/// there is none that is not permitted.
fn a_control_that_is_not_there_is_not_called_forbidden() {
    for form in [&[][..], &["--log", "json"]] {
        let log = tempfile::NamedTempFile::new().unwrap();
        let service = Service::start_logging(form, log.reopen().unwrap());
        drop(service);
        let said = std::fs::read_to_string(log.path()).unwrap();
        let levers: Vec<&str> =
            said.lines().filter(|line| line.contains("high-performance state")).collect();
        assert_eq!(levers.len(), 2, "{said}");
        assert!(levers.iter().all(|line| !line.contains("No such file")), "{said}");
        let latency = levers.iter().find(|line| line.contains("cpu_dma_latency")).unwrap();
        let is_there = Path::new("/dev/cpu_dma_latency").exists();
        assert_eq!(latency.contains("not available"), !is_there, "{latency}");
        assert_eq!(form.is_empty(), !latency.starts_with('{'), "{latency}");
    }
}

/// How many rounds count, and why the others do not, whatever their number.
fn rounds_that_count_are_told_in_words() {
    let args = ["bench", "transport", "--quick", "--no-strace", "--no-frames", "--rounds", "1"];
    let of_it = ["--sizes", "64", "--wait", "sleep", "--placement", "unpinned", "--peers", "ours"];
    let output = run(&[&args[..], &of_it].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains(" in the figures, ")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let is = |count: &str| if count == "1" { "is" } else { "are" };
    let noun = if words[0] == "1" { "round" } else { "rounds" };
    assert_eq!(words[1..3], [noun, is(words[0])], "{line}");
    let rest = line.split_once(" in the figures, ").unwrap().1;
    let dropped = rest.split(' ').next().unwrap();
    let why = format!("{dropped} {} not: in ", is(dropped));
    assert!(rest.starts_with(&why) && rest.contains("the floor was not the same right"), "{line}");
    assert!(!line.contains("dropped") && !line.contains("count"), "{line}");
}

/// The numbers before and behind a slash, of a progress such as `17/100`.
fn progress(line: &str) -> Option<(u64, u64)> {
    let (before, behind) = line.split_once('/')?;
    let place = before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let whole = behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((place, whole))
}

fn frames_that_are_dropped_are_shown_and_count_as_progress() {
    // Small frames, which are read in no time and are due faster than any driver answers, for half a second.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.rgb");
    std::fs::write(&file, vec![90; 4 * 4 * 3 * 50_000]).unwrap();
    let source = file.to_str().unwrap();
    let args =
        ["stream", "--source", source, "--size", "4x4", "--fps", "100000", "--frames", "50000"];
    let session = Session::run(burst(&args), 120);
    let lines = session.lines();
    let dropped = |line: &String| {
        let (before, _) = line.split_once(" dropped  ")?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let drawn: Vec<(u64, u64)> =
        lines.iter().filter_map(|line| Some((progress(line)?.0, dropped(line)?))).collect();
    assert!(!drawn.is_empty(), "{lines:?}");
    assert!(drawn.iter().all(|(place, dropped)| *dropped > 0 && place >= dropped), "{drawn:?}");
    let summary = lines.iter().find(|line| line.contains(" late, ")).unwrap();
    assert!(summary.ends_with(" dropped"), "{summary}");
}

fn no_colour_is_asked_for_by_a_variable() {
    for form in [&["--json"][..], &[]] {
        no_colour_is_asked_for(form);
    }
}

fn no_colour_is_asked_for(form: &[&str]) {
    let colours = |no_colour: Option<&str>| {
        let mut command = burst(&[&["stream", "--frames", "1"], form].concat());
        command.env("BURST_LOG", "debug").env_remove("NO_COLOR").env("TERM", "xterm");
        if let Some(value) = no_colour {
            command.env("NO_COLOR", value);
        }
        let session = Session::run(command, 100);
        assert!(session.transcript.contains("DEBUG"), "log lines: {session:?}");
        // A live line has sequences of its own, which no line of the log is part of.
        let lines = session.transcript.lines().filter(|line| line.contains("DEBUG"));
        let logged: Vec<&str> = lines.collect();
        logged.iter().any(|line| line.contains("DEBUG\u{1b}") || line.contains("mDEBUG"))
    };
    assert!(colours(None), "a terminal has colours");
    assert!(colours(Some("")), "an empty variable asks for nothing");
    assert!(!colours(Some("1")));
}

fn one_frame_is_not_called_frames() {
    for (frames, said) in [("1", "\n1 frame in "), ("2", "\n2 frames in ")] {
        let output = run(&["stream", "--frames", frames]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(said), "{text}");
    }
}
