//! One report.

pub mod page;
pub(crate) mod plot;
