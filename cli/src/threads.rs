//! `--threads`: how many threads compute.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use burst_driver::{CpuDevice, DeviceOptions, Engine, MAX_THREADS};

use crate::device_names;

/// The same for every command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Threads {
    /// Threads that compute one execution, at most as many as there are CPUs to spare. They poll
    /// while an execution is in progress: with --wait spin on as many CPUs they hinder each other.
    #[arg(
        long = "threads",
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::try_from(MAX_THREADS).unwrap_or(1))
    )]
    pub(crate) count: u32,
}

impl Threads {
    /// An engine with so many.
    pub(crate) fn engine(self) -> Engine {
        let threads = usize::try_from(self.count).unwrap_or(MAX_THREADS);
        Engine::new(DeviceOptions { threads, owns_process: true, ..DeviceOptions::default() })
    }

    /// The device with this name, on an engine with so many.
    ///
    /// # Errors
    /// There is no such device.
    pub(crate) fn device(self, name: &str) -> Result<CpuDevice> {
        let variant = device_names::variant(name)?;
        Ok(CpuDevice::of(&Arc::new(self.engine()), variant))
    }

    /// Refuses a number for a service that runs already.
    ///
    /// # Errors
    /// More than one thread and a socket.
    pub(crate) fn check(self, socket: Option<&Path>) -> Result<()> {
        if self.count > 1
            && let Some(socket) = socket
        {
            bail!(
                "--threads {}: the service at {} has threads of its own; start it with \
                 `burst serve --threads {}`",
                self.count,
                socket.display(),
                self.count
            );
        }
        Ok(())
    }
}
