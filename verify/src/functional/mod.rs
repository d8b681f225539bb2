//! What the original suites ask of a driver besides the values of models: each row of theirs is a
//! [`Check`] that runs against any device.

pub mod caching;
mod execution;
pub mod memory_domains;
mod shared_memory;

use burst_hal::{Device, ErrorStatus, Failure};

/// One row of an original suite.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name there.
    pub name: &'static str,
    /// Runs it. An error says what was wrong.
    pub run: fn(&dyn Device) -> Result<Verdict, String>,
}

/// How a check ended that found nothing wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The device does as it should.
    Passed,
    /// The device need not have what the check is about, and does not have it.
    DoesNotApply(String),
}

/// What did not work, in words.
fn refused(what: &str) -> impl Fn(Failure) -> String {
    move |failure| format!("{what}: {failure}")
}

/// Something that must fail with this status.
fn expect_failure<T>(
    what: &str,
    want: ErrorStatus,
    result: Result<T, Failure>,
) -> Result<(), String> {
    match result {
        Err(failure) if failure.status == want => Ok(()),
        Err(failure) => Err(format!("{what}: {want} is due, and it is {failure}")),
        Ok(_) => Err(format!("{what}: {want} is due, and it was done")),
    }
}
