//! The ways to a driver on which a model can be verified or run.

use anyhow::Result;
use burst_driver::CpuDevice;
use burst_verify::models::Route;
use burst_verify::{HeapMaker, Lane, Mode, RunError, Target};

use super::lane::{RemoteLane, Service};

/// How executions reach the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum RouteKind {
    /// One packet through shared memory each way.
    #[default]
    Burst,
    /// One message over the control socket each way.
    Sync,
    /// No driver process: the CPU device in this one.
    InProcess,
}

impl RouteKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RouteKind::Burst => "burst",
            RouteKind::Sync => "sync",
            RouteKind::InProcess => "in-process",
        }
    }

    /// Opens the way: a connection of its own, or a device of its own.
    ///
    /// # Errors
    /// There is no driver.
    pub(crate) fn open<'a>(self, service: &'a Service<'a>) -> Result<Route<'a>, RunError> {
        let (lane, mode): (Box<dyn Lane + 'a>, Mode) = match self {
            RouteKind::Burst => (Box::new(RemoteLane::open(service)?), Mode::Burst),
            RouteKind::Sync => (Box::new(RemoteLane::open(service)?), Mode::Sync),
            RouteKind::InProcess => (Box::new(InProcess(service.threads.device())), Mode::Burst),
        };
        Ok(Route { name: self.name(), lane, mode })
    }
}

/// The CPU device in this process.
struct InProcess(CpuDevice);

impl Lane for InProcess {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &HeapMaker }
    }
}
