//! What a device did that it must not do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::run::message;

/// A breach of the contract: which call, and what was wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {what}")]
pub struct Finding {
    /// The method of the contract.
    pub call: &'static str,
    /// What it did, in words for the author of the device.
    pub what: String,
}

impl Finding {
    pub(super) fn new(call: &'static str, what: impl ToString) -> Self {
        Finding { call, what: what.to_string() }
    }
}

/// A call of the device: a panic is a finding.
pub(super) fn caught<T>(call: &'static str, run: impl FnOnce() -> T) -> Result<T, Finding> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|panic| Finding::new(call, format!("panicked: {}", message(&*panic))))
}
