//! A service that many can connect to, on threads of this process.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

pub mod context;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use burst_client::{Client, ClientError};
use burst_hal::Device;
use burst_server::{Listener, Metrics, Service, ServiceOptions, Stop, Stopper};

use super::burst_support::LONG;

/// A service on a socket in a folder of its own; it ends with this value.
pub struct Shared {
    pub path: PathBuf,
    pub metrics: Arc<Metrics>,
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
    pub folder: tempfile::TempDir,
}

impl Shared {
    pub fn start(device: Arc<dyn Device>, options: ServiceOptions) -> Shared {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("burst.sock");
        let listener = Listener::bind(&path).unwrap();
        let service = Service::new(vec![device], options);
        let metrics = service.metrics();
        let (stopper, stop) = Stop::new().unwrap();
        let thread = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
        Shared { path, metrics, stopper: Some(stopper), thread: Some(thread), folder }
    }

    pub fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&self.path)
    }

    /// One line of the metrics: the value of the series with this name and these labels.
    #[track_caller]
    pub fn metric(&self, series: &str) -> u64 {
        value(&self.metrics.encode(), series)
    }
}

/// The value of a series that counts, in an OpenMetrics text.
#[track_caller]
pub fn value(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.expect("the service does not panic");
        }
    }
}

/// Tries again until it works: what is refused for the moment passes after waiting.
#[track_caller]
pub fn passes_after_waiting<T, E: std::fmt::Display>(
    mut attempt: impl FnMut() -> Result<T, E>,
) -> T {
    let until = Instant::now() + LONG;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < until, "it never passed: {error}"),
        }
        std::thread::yield_now();
    }
}
