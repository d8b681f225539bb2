//! What a device runs: what its registry has, as far as the device takes it.

use burst_hal::{Operation, Subgraph};

use crate::registry::Registry;

/// An operation of a model, about which a device is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'m> {
    /// The graph it stands in.
    pub(crate) graph: &'m Subgraph,
    pub(crate) operation: &'m Operation,
}

/// What a device runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer<'a> {
    pub(crate) registry: &'a Registry,
    /// Whether it takes an operation that the registry has. Of one that runs graphs it is asked too, and of
    /// each operation in them.
    pub(crate) takes: fn(&Candidate<'_>) -> bool,
}
