//! How a stream ends while its live line is drawn in a terminal: the line goes away, the summary stands by itself, and
//! the reason is the last thing that is said.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use crate::support::terminal::{Running, Session};
use crate::support::{burst, child_of, signal};

burst_testing::tests![
    a_signal_leaves_the_summary_and_the_reason(),
    a_dead_driver_leaves_the_summary_and_the_reason(),
    a_file_that_is_damaged_in_the_middle_leaves_the_summary_and_the_reason(),
    the_numbers_of_frames_are_those_of_saved_files(),
];

impl Session {
    /// Asserts that the summary and the reason stand on lines of their own, and nothing of the live line between
    /// or behind them.
    #[track_caller]
    fn assert_ended(&self, code: i32, reason: &str) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert!(self.transcript.contains(" fps  p50 "), "a live line was drawn: {self:?}");
        let lines = self.lines();
        let at = |wanted: &dyn Fn(&str) -> bool| lines.iter().rposition(|line| wanted(line.trim()));
        let summary = at(&|line| {
            line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" in ")
        });
        let summary = summary.unwrap_or_else(|| panic!("no summary: {lines:#?}"));
        let drawn = at(&|line| line.contains(" fps  p50 ")).unwrap();
        assert!(drawn < summary, "{lines:#?}");
        // Where the line was, the terminal is cleared before the summary is written.
        let behind = self.transcript.rfind(" fps  p50 ").unwrap();
        assert!(self.transcript[behind..].contains("\u{1b}[2K"), "{self:?}");
        let last = lines.last().unwrap();
        assert!(last.starts_with("burst: ") && last.contains(reason), "{lines:#?}");
    }
}

/// A stream that goes on for long, slowly, with its live line drawn.
fn drawn() -> Running {
    let stream = Running::start(burst(&["stream", "--fps", "50", "--frames", "100000"]), 100);
    stream.wait_for(" fps  p50 ");
    stream
}

fn a_signal_leaves_the_summary_and_the_reason() {
    for (flag, name, code) in
        [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)]
    {
        let stream = drawn();
        signal(stream.pid(), flag);
        stream.end().assert_ended(code, &format!("interrupted by {name}"));
    }
}

fn a_dead_driver_leaves_the_summary_and_the_reason() {
    let stream = drawn();
    let driver = child_of(stream.pid());
    signal(driver, "-KILL");
    stream.end().assert_ended(2, &format!("(process {driver}) died: killed by SIGKILL"));
}

/// A video of so many frames, and a piece of another.
fn cut(file: &Path, frames: usize) {
    let mut bytes = b"YUV4MPEG2 W64 H48 F30:1 C420jpeg\n".to_vec();
    for _ in 0..=frames {
        bytes.extend(b"FRAME\n");
        bytes.extend(vec![128; 64 * 48 + 2 * 32 * 24]);
    }
    bytes.truncate(bytes.len() - 100);
    std::fs::write(file, bytes).unwrap();
}

fn a_file_that_is_damaged_in_the_middle_leaves_the_summary_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v.y4m");
    cut(&file, 60);
    let source = file.to_str().unwrap();
    let args = ["stream", "--source", source, "--fps", "40"];
    Session::run(burst(&args), 100).assert_ended(2, "v.y4m is cut off: it ends");
}

/// Places in the source, from 1, in the text and on disk, also where some are left out.
fn the_numbers_of_frames_are_those_of_saved_files() {
    let folder = tempfile::tempdir().unwrap();
    let (pictures, saved) = (folder.path().join("pictures"), folder.path().join("saved"));
    std::fs::create_dir(&pictures).unwrap();
    for name in ["a.png", "b.png", "c.png"] {
        burst_pictures::write_png(&pictures.join(name), 64, 48, &[120; 64 * 48 * 3]).unwrap();
    }
    let damaged = pictures.join("b.png");
    let whole = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    let args = ["stream", "--source", pictures.to_str().unwrap(), "--lenient"];
    let output =
        crate::support::run(&[&args[..], &["--save-frames", saved.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = said
        .lines()
        .filter_map(|line| line.strip_prefix("frame ")?.split([' ', ':']).next()?.parse().ok())
        .collect();
    assert_eq!(numbers, [1, 3], "{said}");
    let mut files: Vec<String> = std::fs::read_dir(&saved)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let named: Vec<String> =
        numbers.iter().map(|number| format!("frame-{number:06}.png")).collect();
    assert_eq!(files, named);
}
