//! What is drawn: in a terminal, in a narrow one, without colours.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use crate::support::{Service, burst, run, terminal::Session};

burst_testing::tests![
    tables_fit_a_narrow_terminal(),
    wide_tables_fit_too_and_break_no_word(),
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
        let session = Session::run(burst(args), 60);
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
    let colours = |no_colour: Option<&str>| {
        let mut command = burst(&["stream", "--frames", "1", "--json"]);
        command.env("BURST_LOG", "debug").env_remove("NO_COLOR").env("TERM", "xterm");
        if let Some(value) = no_colour {
            command.env("NO_COLOR", value);
        }
        let session = Session::run(command, 100);
        assert!(session.transcript.contains("DEBUG"), "log lines: {session:?}");
        session.transcript.contains('\u{1b}')
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
