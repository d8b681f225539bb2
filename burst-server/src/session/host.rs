//! What all sessions of a service share.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::Device;
use burst_wire::Features;

use crate::admission::{Admission, Limits};
use crate::burst::BurstStarter;
use crate::launches::LaunchHost;
use crate::metrics::Metrics;
use crate::scheduler::Scheduler;

/// What a service offers to its clients, and how it treats all of them.
pub(crate) struct Host {
    pub(crate) devices: Vec<Arc<dyn Device>>,
    /// The program's name, for clients.
    pub(crate) name: String,
    /// Additions to HAL 1.2 that are offered.
    pub(crate) features: Features,
    pub(crate) limits: Limits,
    pub(crate) admission: Admission,
    pub(crate) bursts: BurstStarter,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) launches: Arc<LaunchHost>,
    /// How long executions may go on when the service stops.
    pub(crate) grace: Duration,
}
