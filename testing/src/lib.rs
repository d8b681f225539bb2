//! Tests that say so when they do not run.
//!
//! Some tests need what is not on every machine: the data of `../shared`, `strace`, two CPUs, a
//! device file. Rust's own harness knows only passed and failed once a test has begun. Files with
//! such tests therefore have a list of them, made with [`tests!`], and a `main` that hands the lists
//! to [`run`]; their manifest says `harness = false`. A test whose needs are not met is reported as
//! ignored, by name and with what is missing:
//!
//! ```text
//! test conformance::every_vector_holds ... ignored (needs ../shared/vts, which is not here)
//! ```
//!
//! A test function that is in no list is dead code, and so is a list that no `main` names: the
//! compiler warns of both, and `.ci/run` denies warnings.

mod forked;
mod needs;
mod shared_object;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};

pub use forked::run_in_forked_child;
pub use needs::{Missing, Root, TwoCpus, program, root, shared, two_cpus};
pub use shared_object::SharedObject;

/// One test of a list: its name and what runs it. Made by [`tests!`].
#[derive(Debug, Clone, Copy)]
pub struct Test {
    path: &'static str,
    run: fn() -> Result<(), Missing>,
}

impl Test {
    /// A test by its whole path, crate first.
    #[must_use]
    pub const fn new(path: &'static str, run: fn() -> Result<(), Missing>) -> Test {
        Test { path, run }
    }

    /// The path without the crate, as Rust's own harness names tests.
    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }

    fn trial(self) -> Trial {
        Trial::ignorable_test(self.name(), move || match (self.run)() {
            Ok(()) => Ok(Completion::Completed),
            Err(missing) if missing.is_required() => Err(Failed::from(missing)),
            Err(missing) => Ok(Completion::ignored_with(missing.to_string())),
        })
    }
}

/// Makes `TESTS`, the list of a file's tests, each written as the call that runs it.
///
/// A need is an argument with a `?` behind it: where it is not met, the test is ignored with the
/// [`Missing`] that it gives.
///
/// ```
/// use std::path::Path;
/// use burst_testing::{TwoCpus, shared, two_cpus};
///
/// burst_testing::tests![
///     every_vector_holds(&shared("vts")?),
///     two_threads_are_faster_than_one(two_cpus()?),
///     a_model_without_operations_is_refused(),
/// ];
///
/// fn every_vector_holds(vectors: &Path) {
///     assert!(vectors.is_dir());
/// }
///
/// fn two_threads_are_faster_than_one(_: TwoCpus) {}
///
/// fn a_model_without_operations_is_refused() {}
/// # fn main() { assert_eq!(TESTS.len(), 3) }
/// ```
#[macro_export]
macro_rules! tests {
    ($($test:ident($($argument:expr),* $(,)?)),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::Test] = &[$(
            $crate::Test::new(concat!(module_path!(), "::", stringify!($test)), || {
                $test($($argument),*);
                Ok(())
            })
        ),*];
    };
}

/// A test whose name is made when the list is: a row of a table, in one of several places. Written by
/// hand, tests belong in [`tests!`].
pub struct Case {
    name: String,
    run: Box<dyn FnOnce() + Send>,
}

impl Case {
    /// A test of this name, which fails where `run` panics.
    pub fn new(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Case {
        Case { name: name.into(), run: Box::new(run) }
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// As [`run`], of cases.
#[must_use]
pub fn run_cases(cases: Vec<Case>) -> ExitCode {
    run_cases_as_asked(&Arguments::from_args(), cases).exit_code()
}

fn run_cases_as_asked(arguments: &Arguments, cases: Vec<Case>) -> Conclusion {
    let trials = cases.into_iter().map(|Case { name, run }| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    });
    libtest_mimic::run(arguments, trials.collect())
}

/// Runs these lists as the command line asks, several tests at once.
///
/// The command line is that of Rust's own harness: a filter, `--exact`, `--skip`, `--list`,
/// `--test-threads`. Output of tests is not held back.
#[must_use]
pub fn run(lists: &[&[Test]]) -> ExitCode {
    run_as_asked(&Arguments::from_args(), lists).exit_code()
}

/// Runs these lists one test after the other on the main thread: nothing else goes on in the process
/// while a test counts what it holds.
#[must_use]
pub fn run_one_after_the_other(lists: &[&[Test]]) -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    run_as_asked(&arguments, lists).exit_code()
}

fn run_as_asked(arguments: &Arguments, lists: &[&[Test]]) -> Conclusion {
    let trials = lists.iter().flat_map(|list| list.iter().map(|test| test.trial())).collect();
    libtest_mimic::run(arguments, trials)
}

#[cfg(test)]
mod tests;
