//! How requests reach a driver: over a burst, over the control socket, or not at all.

use std::time::Duration;

use anyhow::{Result, bail};
use burst_client::Outages;
use burst_hal::{Caller, ErrorStatus, ExecutionPreference, PrepareOptions, Priority};
use burst_harness::WaitKind;
use burst_tasks::Outputs;
use burst_tflite::Imported;

use crate::divided::Divided;
use crate::route::RouteArg;
use crate::threads::Threads;
use crate::trace::Tracing;

mod in_process;
mod remote;

pub(crate) use in_process::InProcess;

/// A prepared model that takes one frame after the other, with the outputs of the last execution.
pub(crate) trait Path: Outputs {
    /// The memory of the model's first input, to be filled before [`Path::execute`]. Its others, if
    /// any, are states that are carried from one execution into the next.
    fn input(&mut self) -> &mut [u8];

    /// Runs once: how it ended, and the time the driver measured.
    ///
    /// An error is the end of the stream: nobody answers any more. Where the stream survives its
    /// driver, a request that was lost with it is DEVICE_UNAVAILABLE.
    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)>;

    /// Lets the next execution begin with the states that the first one began with.
    fn reset_states(&mut self);

    /// The process that executes.
    fn driver_pid(&self) -> u32;

    /// How requests reach it, as it has turned out.
    fn route(&self) -> RouteArg;

    /// How this end of a burst waits; `None` where there is no burst.
    fn wait(&self) -> Option<WaitKind> {
        None
    }

    /// What was lost so far, where the stream survives its driver.
    fn outages(&self) -> Option<Outages> {
        None
    }

    /// How often a request was sent again because the driver was short of something.
    fn retries(&self) -> u64 {
        0
    }
}

/// Which driver is used, and how it is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// How requests reach it.
    pub(crate) route: RouteArg,
    /// Whether they may go over the control socket where no burst is to be had.
    pub(crate) falls_back: bool,
    /// How both ends of a burst wait.
    pub(crate) wait: WaitKind,
    /// Socket of a running service; without it a private process is started.
    pub(crate) socket: Option<&'a std::path::Path>,
    /// Name of the device.
    pub(crate) device: &'a str,
    /// Names of devices of this process among which the model is divided; none: `device` runs all of it.
    pub(crate) devices: &'a [String],
    /// What the model should be good at.
    pub(crate) preference: ExecutionPreference,
    /// Whom its executions give way to.
    pub(crate) priority: Priority,
    /// Whether to go on after the driver died.
    pub(crate) reconnect: bool,
    /// How long one request may take, and the first connection where `reconnect` waits for it.
    pub(crate) deadline: Duration,
    /// Threads that compute, unless a service runs already.
    pub(crate) threads: Threads,
    /// Where spans go, where somebody wants them.
    pub(crate) tracing: Option<&'a Tracing>,
}

impl Options<'_> {
    /// What is said of the model when it is prepared.
    fn prepare(&self) -> PrepareOptions {
        let Options { preference, priority, .. } = *self;
        PrepareOptions { preference, priority, ..PrepareOptions::default() }
    }
}

/// Prepares the model where `options` say.
pub(crate) fn open(options: &Options<'_>, imported: &Imported) -> Result<Box<dyn Path>> {
    if !options.devices.is_empty() {
        let devices = Divided::among(options.devices, options.threads)?;
        let caller = options.tracing.map_or_else(Caller::default, Tracing::caller);
        return Ok(Box::new(InProcess::on(&devices, imported, options.prepare(), caller)?));
    }
    match options.route {
        RouteArg::InProcess => {
            if options.socket.is_some() {
                bail!("--path in-process uses no socket");
            }
            if options.reconnect {
                bail!("--path in-process has no driver process to connect to again");
            }
            Ok(Box::new(InProcess::new(imported, options)?))
        }
        RouteArg::Burst | RouteArg::Sync | RouteArg::Async | RouteArg::Fenced => {
            remote::open(options, imported)
        }
    }
}
