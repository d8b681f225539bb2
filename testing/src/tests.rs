//! A need that is not met gives "ignored" with the reason, one that is met lets the test run, and
//! what is required and not there fails. Each test runs lists of its own and reads what was printed.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Conclusion};

use super::needs::{program_in, root_of, shared_in, two_of};
use super::{Missing, Test, run_as_asked};

const NOWHERE: &str = "/nonexistent";

/// Runs a list with these arguments; also what was printed.
fn run(arguments: &[&str], list: &[Test]) -> (Conclusion, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let log_argument = log.to_str().expect("UTF-8");
    let all = [&["program", "--logfile", log_argument], arguments].concat();
    let conclusion = run_as_asked(&Arguments::from_iter(all), &[list]);
    (conclusion, fs::read_to_string(log).expect("the log"))
}

/// Whether a line of the text says this of a test. Names are padded to one width.
fn says(printed: &str, name: &str, outcome: &str) -> bool {
    printed.lines().any(|line| {
        let rest = line.strip_prefix("test ").and_then(|line| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.trim_start().strip_prefix("... ") == Some(outcome))
    })
}

mod needy {
    use super::*;

    pub(super) static BEGUN: AtomicUsize = AtomicUsize::new(0);

    crate::tests![
        lacks_shared(&shared_in(Path::new(NOWHERE), "vts", false)?),
        lacks_all_of_shared(&shared_in(Path::new(NOWHERE), "", false)?),
        lacks_a_program(&program_in(OsStr::new(NOWHERE), "strace")?),
        lacks_a_cpu(two_of(1)?),
        lacks_root(root_of("Name:\tx\nUid:\t0\t1000\t0\t0\n")?),
        lacks_the_second(&shared_in(Path::new("/"), "proc", false)?, two_of(1)?),
        has_all(
            &shared_in(Path::new("/"), "proc", true)?,
            &program_in(OsStr::new("/nonexistent:/bin"), "sh")?,
            two_of(2)?,
            root_of("Uid:\t1000\t0\t0\t0\n")?,
        ),
        has_no_needs(),
    ];

    fn lacks_shared(_: &Path) {
        unreachable!("it is not there");
    }

    fn lacks_all_of_shared(_: &Path) {
        unreachable!("it is not there");
    }

    fn lacks_a_program(_: &Path) {
        unreachable!("it is not there");
    }

    fn lacks_a_cpu(_: crate::TwoCpus) {
        unreachable!("there is one");
    }

    fn lacks_root(_: crate::Root) {
        unreachable!("its user is another one");
    }

    fn lacks_the_second(_: &Path, _: crate::TwoCpus) {
        unreachable!("there is one");
    }

    fn has_all(shared: &Path, program: &Path, _: crate::TwoCpus, _: crate::Root) {
        assert_eq!(shared, Path::new("/proc"));
        assert_eq!(program, Path::new("/bin/sh"));
        BEGUN.fetch_add(1, Ordering::SeqCst);
    }

    fn has_no_needs() {
        BEGUN.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn what_lacks_something_is_ignored_by_name_with_the_reason_and_the_rest_runs() {
    let (conclusion, printed) = run(&["--test-threads", "2"], needy::TESTS);
    assert_eq!(conclusion.exit_code(), ExitCode::SUCCESS);
    assert_eq!((conclusion.num_passed, conclusion.num_ignored), (2, 6), "{printed}");
    assert_eq!(needy::BEGUN.load(Ordering::SeqCst), 2);
    for (name, outcome) in [
        (
            "lacks_shared",
            "ignored (needs /nonexistent/vts, which is not here (BURST_SHARED says where))",
        ),
        (
            "lacks_all_of_shared",
            "ignored (needs /nonexistent, which is not here (BURST_SHARED says where))",
        ),
        ("lacks_a_program", "ignored (needs strace, which is not installed)"),
        ("lacks_a_cpu", "ignored (needs two CPUs, and this process may run on 1)"),
        ("lacks_root", "ignored (needs root, to be two users)"),
        ("lacks_the_second", "ignored (needs two CPUs, and this process may run on 1)"),
        ("has_all", "ok"),
        ("has_no_needs", "ok"),
    ] {
        // Names begin behind the crate: here with the modules of this test.
        let name = format!("tests::needy::{name}");
        assert!(says(&printed, &name, outcome), "{name} {outcome}: {printed}");
    }
}

mod failing {
    use super::*;

    crate::tests![
        required_and_not_there(&shared_in(Path::new(NOWHERE), "vts", true)?),
        fails(),
        needs_something_else(own_need()?),
    ];

    fn own_need() -> Result<(), Missing> {
        Err(Missing::new("a purple CPU"))
    }

    fn required_and_not_there(_: &Path) {
        unreachable!("it is not there");
    }

    fn fails() {
        panic!("this panic is wanted");
    }

    fn needs_something_else((): ()) {
        unreachable!("there is none");
    }
}

#[test]
fn what_is_required_and_not_there_fails_by_name_as_a_panic_does() {
    let (conclusion, printed) = run(&[], failing::TESTS);
    assert_ne!(conclusion.exit_code(), ExitCode::SUCCESS);
    assert_eq!((conclusion.num_failed, conclusion.num_ignored), (2, 1), "{printed}");
    assert!(says(&printed, "tests::failing::required_and_not_there", "FAILED"), "{printed}");
    assert!(says(&printed, "tests::failing::fails", "FAILED"), "{printed}");
    let own = "ignored (needs a purple CPU)";
    assert!(says(&printed, "tests::failing::needs_something_else", own), "{printed}");
    let reason = "needs /nonexistent/vts, which is not here (BURST_SHARED says where); \
                  BURST_REQUIRE_SHARED asks for it";
    assert!(printed.contains(reason), "{printed}");
}

#[test]
fn tests_are_listed_and_chosen_as_in_the_usual_harness() {
    let (_, listed) = run(&["--list"], needy::TESTS);
    assert_eq!(listed.lines().count(), needy::TESTS.len(), "{listed}");
    assert!(listed.contains("tests::needy::has_all: test\n"), "{listed}");
    for (arguments, chosen) in [
        (&["has_"][..], 2),
        (&["tests::needy::has_all", "--exact"], 1),
        (&["has_all", "--exact"], 0),
        (&["lacks", "--skip", "shared"], 4),
        (&["--ignored"], 0),
        (&["--nocapture"], needy::TESTS.len()),
    ] {
        let (conclusion, printed) = run(&[arguments, &["--list"]].concat(), needy::TESTS);
        assert_eq!(conclusion.exit_code(), ExitCode::SUCCESS);
        assert_eq!(printed.lines().count(), chosen, "{arguments:?}: {printed}");
    }
}
