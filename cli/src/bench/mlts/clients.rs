//! Several clients of one service at once.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_harness::engine::{Quantiles, Times};
use serde::Serialize;

use super::contest::{Setup, Way};
use super::latency::nanos;
use super::tally::real;
use crate::route::RouteArg;

/// How long all of them compute.
const LENGTH: Duration = Duration::from_secs(1);

/// So many clients at once.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Clients {
    pub(super) clients: u32,
    /// Answers per second to all of them.
    pub(super) per_second: f64,
    pub(super) latency_us: Quantiles,
}

/// A service of our own; it never outlives this value.
struct Service(Child);

impl Service {
    fn start(socket: &Path, setup: &Setup<'_>) -> Result<Service> {
        let threads = setup.threads.count.to_string();
        let mut child = Command::new("/proc/self/exe")
            .args(["serve", "--threads", &threads, "--socket"])
            .arg(socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a service")?;
        let said = child.stdout.take().context("a service has no standard output")?;
        let service = Service(child);
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).context("a service says nothing")?;
        if line.is_empty() {
            bail!("a service for several clients did not start");
        }
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It is gone already where this fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets so many clients at once compute the same model over bursts, each as fast as it is answered.
pub(super) fn sweep(counts: &[u32], setup: &Setup<'_>, inputs: &[Vec<u8>]) -> Result<Vec<Clients>> {
    let folder = tempfile::tempdir().context("no folder for a socket")?;
    let socket = folder.path().join("burst.sock");
    let _service = Service::start(&socket, setup)?;
    counts.iter().map(|count| at_once(*count, &socket, setup, inputs)).collect()
}

fn at_once(count: u32, socket: &Path, setup: &Setup<'_>, inputs: &[Vec<u8>]) -> Result<Clients> {
    let begin = Barrier::new(count as usize);
    let all = std::thread::scope(|scope| {
        let one = || scope.spawn(|| one_client(socket, setup, inputs, &begin));
        let started: Vec<_> = (0..count).map(|_| one()).collect();
        let ended = started.into_iter().map(|client| {
            client.join().unwrap_or_else(|_| bail!("the thread of a client ended before its time"))
        });
        ended.collect::<Result<Vec<Vec<u64>>>>()
    })?;
    let times = Times::new(all.concat());
    let latency_us = times.quantiles_us().context("no client was answered")?;
    let per_second = real(times.len() as u64) / LENGTH.as_secs_f64();
    Ok(Clients { clients: count, per_second, latency_us })
}

fn one_client(
    socket: &Path,
    setup: &Setup<'_>,
    inputs: &[Vec<u8>],
    begin: &Barrier,
) -> Result<Vec<u64>> {
    let opened = Way::open_at(Some(socket), RouteArg::Burst, setup);
    begin.wait(); // whatever came of it: others wait too
    let mut way = opened?;
    let (started, mut times) = (Instant::now(), Vec::new());
    for input in inputs.iter().cycle() {
        if started.elapsed() >= LENGTH {
            break;
        }
        times.push(nanos(way.run(input, false)?));
    }
    Ok(times)
}
