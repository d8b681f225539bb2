//! `--threads`: how many threads compute.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use burst_driver::{CpuDevice, DeviceOptions, Engine, MAX_THREADS};

use crate::device_names;
use crate::out::{self, counted};

/// The same for every command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Threads {
    /// Threads that compute one execution. They poll while an execution is in progress: with more
    /// than there are CPUs for this process they would hinder each other, so that no more are used.
    #[arg(
        long = "threads",
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::try_from(MAX_THREADS).unwrap_or(1))
    )]
    pub(crate) count: u32,
}

impl Threads {
    /// Becomes what is of use: no more threads than this process has CPUs. That it is fewer is said, by whoever
    /// reads the command line, and by nobody else.
    ///
    /// # Errors
    /// As [`Threads::check`].
    pub(crate) fn settle(&mut self, socket: Option<&Path>) -> Result<()> {
        self.check(socket)?;
        self.count = useful(&[self.count]).last().copied().unwrap_or(1);
        Ok(())
    }

    /// The same of a service, which says it in its log.
    pub(crate) fn settle_in_log(&mut self) {
        let (used, too_many) = useful_of(&[self.count]);
        if let Some(said) = too_many {
            tracing::warn!("{said}");
        }
        self.count = used.last().copied().unwrap_or(1);
    }

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
    fn check(self, socket: Option<&Path>) -> Result<()> {
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

/// Of several numbers those that are of use, each once; that some are not is said once.
pub(crate) fn useful(numbers: &[u32]) -> Vec<u32> {
    let (used, too_many) = useful_of(numbers);
    too_many.iter().for_each(out::say);
    used
}

/// The same, with what is to be said where some are not.
fn useful_of(numbers: &[u32]) -> (Vec<u32>, Option<String>) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let most = u32::try_from(cpus).unwrap_or(u32::MAX);
    let too_many = numbers.iter().max().filter(|asked| **asked > most).map(|asked| {
        let (cpus, threads) = (counted(most.into(), "CPU"), counted(most.into(), "thread"));
        let compute = if most == 1 { "computes" } else { "compute" };
        format!("--threads {asked}: this process has {cpus}, so {threads} {compute}")
    });
    let mut used: Vec<u32> = Vec::with_capacity(numbers.len());
    for number in numbers.iter().map(|number| (*number).min(most)) {
        if !used.contains(&number) {
            used.push(number);
        }
    }
    (used, too_many)
}
