//! What the numbers belong to: the machine and its CPUs, and when and how they were measured.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::error::HarnessError;
use crate::run_facts;

/// What a report says about the machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor, as the kernel names it.
    pub processor: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Smallest step of the clock seen, in nanoseconds.
    pub clock_step_ns: u64,
    /// Load of the last minute when the run began.
    pub load: f64,
    /// Whether this process may ask the system to keep its CPUs awake (`/dev/cpu_dma_latency`):
    /// `permitted`, or why not.
    pub keep_awake: String,
    /// When the run began, in UTC.
    #[serde(default)]
    pub began: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// The command.
    #[serde(default)]
    pub command: String,
}

/// Bytes that are read over to measure memory: more than caches have.
const READ_BYTES: usize = 256 << 20;

/// Bytes per second that one thread reads of memory that no cache has; the best of three passes.
#[must_use]
pub fn memory_bytes_per_s() -> f64 {
    // Written, so that it is memory and not one page of zeroes.
    let numbers: Vec<u64> = (0..(READ_BYTES / size_of::<u64>()) as u64).collect();
    let pass = || {
        let start = Instant::now();
        let sum =
            std::hint::black_box(&numbers).iter().fold(0_u64, |sum, one| sum.wrapping_add(*one));
        std::hint::black_box(sum);
        crate::engine::to_f64(READ_BYTES as u64) / start.elapsed().as_secs_f64().max(1e-9)
    };
    (0..3).map(|_| pass()).fold(0.0, f64::max)
}

/// The most memory that a process ever had resident, in KiB; `None` where that cannot be read.
#[must_use]
pub fn peak_memory_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes of memory that a process has to itself and that no file has, as they are now; `None` where that cannot be read.
#[must_use]
pub fn own_memory_bytes(pid: u32) -> Option<u64> {
    let sums = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = sums.lines().find_map(|line| line.strip_prefix("Anonymous:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1 << 10)
}

impl Machine {
    /// This one, now.
    #[must_use]
    pub fn detect() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let load = read("/proc/loadavg");
        Machine {
            began: run_facts::now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: run_facts::command(),
            processor: processor(),
            cpus: usable_cpus().map_or(0, |cpus| cpus.len()),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            clock_step_ns: clock_step_ns(),
            keep_awake: match KeepAwake::open() {
                Ok(_) => "permitted".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    format!("not available: this system has no {}", KeepAwake::DEVICE)
                }
                Err(error) => format!("not permitted: {error}"),
            },
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// Model of the processor, as the kernel names it; its architecture where it does not.
#[must_use]
pub fn processor() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// While it lives, no CPU enters a sleep state that takes time to leave.
#[derive(Debug)]
pub struct KeepAwake(File);

impl KeepAwake {
    /// Where the kernel takes the request; it holds while the file is open.
    const DEVICE: &str = "/dev/cpu_dma_latency";

    fn open() -> io::Result<KeepAwake> {
        OpenOptions::new().write(true).open(Self::DEVICE).map(KeepAwake)
    }

    /// Asks the kernel for wake-ups without delay.
    ///
    /// # Errors
    /// Not permitted.
    pub fn take() -> Result<KeepAwake, HarnessError> {
        let mut request = Self::open()?;
        request.0.write_all(&0_i32.to_ne_bytes())?; // microseconds
        Ok(request)
    }

    /// Whether it can be taken here.
    #[must_use]
    pub fn is_permitted() -> bool {
        Self::open().is_ok()
    }
}

/// The CPUs that this process may run on.
///
/// # Errors
/// The system's.
pub fn usable_cpus() -> Result<Vec<usize>, HarnessError> {
    let set = sched_getaffinity(None).map_err(HarnessError::system("sched_getaffinity"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Keeps this thread, and those it starts, on one CPU.
///
/// # Errors
/// The system's.
pub fn pin(cpu: usize) -> Result<(), HarnessError> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(HarnessError::system("sched_setaffinity"))
}

/// Two CPUs: one for what computes, wherever it runs, and one for who waits for it. CPUs of a
/// virtual machine are not equally quick, so that a ratio means little where the two sides of it
/// computed on different ones.
#[derive(Debug, Clone, Copy)]
pub struct Pins {
    compute: usize,
    client: usize,
    all: CpuSet,
}

impl Pins {
    /// The first two CPUs that this process may use.
    ///
    /// # Errors
    /// There is one only, or the system's.
    pub fn take() -> Result<Pins, HarnessError> {
        let all = sched_getaffinity(None).map_err(HarnessError::system("sched_getaffinity"))?;
        match usable_cpus()?[..] {
            [client, compute, ..] => Ok(Pins { compute, client, all }),
            _ => Err(HarnessError::peer("pinning needs two CPUs, and this process may use one")),
        }
    }

    /// Keeps this thread, and what it starts from now on, where the computing is done.
    ///
    /// # Errors
    /// The system's.
    pub fn compute(&self) -> Result<(), HarnessError> {
        pin(self.compute)
    }

    /// Keeps this thread on the other one.
    ///
    /// # Errors
    /// The system's.
    pub fn client(&self) -> Result<(), HarnessError> {
        pin(self.client)
    }

    /// Lets this thread run wherever it might before.
    ///
    /// # Errors
    /// The system's.
    pub fn release(&self) -> Result<(), HarnessError> {
        sched_setaffinity(None, &self.all).map_err(HarnessError::system("sched_setaffinity"))
    }
}

/// The smallest difference between clock readings that differ.
fn clock_step_ns() -> u64 {
    const READINGS: usize = 20_000;
    let start = Instant::now();
    let mut smallest = u64::MAX;
    let mut before = start.elapsed();
    for _ in 0..READINGS {
        let now = start.elapsed();
        let step = u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX);
        if step > 0 {
            smallest = smallest.min(step);
        }
        before = now;
    }
    smallest
}
