//! What the original suites ask of a driver besides the values of models: each row of theirs is a
//! [`Check`] that runs against any device.

mod basic;
pub mod caching;
mod deadlines;
mod execution;
mod generated;
pub mod memory_domains;
mod samples;
mod shared_memory;
mod validation;

use burst_hal::{Device, ErrorStatus, Failure};

/// One row of an original suite.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name there.
    pub name: &'static str,
    /// Runs it. An error says what was wrong.
    pub run: fn(&dyn Device) -> Checked,
}

/// What comes of a check. An error says what the device did and should not have done.
pub type Checked = Result<Verdict, String>;

/// Every check that needs nothing but a device. Those of [`caching`] need files as well.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let lists = [
        basic::CHECKS,
        generated::CHECKS,
        deadlines::CHECKS,
        validation::CHECKS,
        memory_domains::CHECKS,
    ];
    lists.into_iter().flatten()
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
