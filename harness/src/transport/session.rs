//! The loops around a peer's own calls: who sends when, what is timed, what is checked.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use crate::engine::quiet;
use crate::error::HarnessError;
use crate::machine::peak_memory_kib;
use crate::transport::case::{ANSWER_BYTES, Case, Job};
use crate::transport::link::Link;
use crate::transport::sample::{Recorder, Sample};
use crate::transport::work::{self, AnswerBytes, Request};

/// The client's end of a channel that carries bytes.
pub trait ClientEnd {
    /// Sends a request.
    ///
    /// # Errors
    /// The peer's.
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError>;

    /// Waits for the next answer, in the order of the requests.
    ///
    /// # Errors
    /// The peer's.
    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError>;
}

/// What the client measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// How long the round trips took.
    pub sample: Sample,
    /// CPU time that this process used for them.
    pub cpu_ns: u64,
    /// What computing took before and after, the longer of both: see [`quiet`].
    pub compute_ns: f64,
    /// The most memory that this process ever had resident, in KiB.
    pub memory_kib: Option<u64>,
}

/// What the server used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Served {
    /// CPU time that this process used for the measured round trips.
    pub cpu_ns: u64,
    /// What computing took before and after, the longer of both: see [`quiet`].
    pub compute_ns: f64,
    /// The most memory that this process ever had resident, in KiB.
    pub memory_kib: Option<u64>,
}

/// A peer's client, about to be measured.
#[derive(Debug)]
pub struct ClientSession<'a> {
    job: &'a Job,
    /// To the server, for setting up.
    pub link: Link,
}

impl<'a> ClientSession<'a> {
    pub(crate) fn new(job: &'a Job, link: Link) -> Self {
        ClientSession { job, link }
    }

    /// What is measured.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.job.case
    }

    /// When to give up.
    #[must_use]
    pub fn deadline(&self) -> fmq::Deadline {
        fmq::Deadline::after(self.job.limit)
    }

    /// Round trips over a channel that carries bytes, as many in flight as the case says.
    ///
    /// # Errors
    /// The channel's; [`HarnessError::WrongAnswer`].
    pub fn run(self, end: &mut impl ClientEnd) -> Result<Measured, HarnessError> {
        let mut request = Request::new(self.job.case.request_bytes);
        let mut answer = [0; ANSWER_BYTES];
        let ahead = u64::from(self.job.case.in_flight.saturating_sub(1));
        if ahead > 0 {
            return self.run_pipelined(end, ahead);
        }
        request.renew(0);
        self.run_trips(|sequence| {
            end.send(request.bytes())?;
            // While the server works: an end that copies a message right after the message's first
            // word was stored has to wait for that store.
            request.renew(sequence + 1);
            end.receive(&mut answer)?;
            request.check(sequence, &answer)
        })
    }

    /// With `ahead` requests under way before the first answer is awaited. A trip then is the time
    /// between two answers.
    fn run_pipelined(self, end: &mut impl ClientEnd, ahead: u64) -> Result<Measured, HarnessError> {
        let mut request = Request::new(self.job.case.request_bytes);
        let mut answer = [0; ANSWER_BYTES];
        let total = u64::from(self.job.warm_up) + u64::from(self.job.trips);
        let mut sent = 0;
        request.renew(sent);
        self.run_trips(|sequence| {
            while sent < total && sent <= sequence + ahead {
                end.send(request.bytes())?;
                sent += 1;
                request.renew(sent);
            }
            end.receive(&mut answer)?;
            request.check(sequence, &answer)
        })
    }

    /// Round trips of a peer with a form of its own, which checks its answers itself. `trip` gets
    /// the number of the request.
    ///
    /// # Errors
    /// Those of `trip` and of the link.
    pub fn run_trips(
        mut self,
        mut trip: impl FnMut(u64) -> Result<(), HarnessError>,
    ) -> Result<Measured, HarnessError> {
        let compute_before = quiet::compute_ns();
        begin(&mut self.link, self.job)?;
        let warm_up = u64::from(self.job.warm_up);
        for sequence in 0..warm_up {
            trip(sequence)?;
        }
        let last = warm_up + u64::from(self.job.trips);
        let mut times = Recorder::with_capacity(self.job.trips as usize);
        let cpu = cpu_ns()?;
        let begin = Instant::now();
        match self.job.case.period_ns {
            0 => {
                let mut before = begin;
                for sequence in warm_up..last {
                    trip(sequence)?;
                    let now = Instant::now();
                    times.push(now - before);
                    before = now;
                }
            }
            period => {
                let period = Duration::from_nanos(period);
                let mut due = begin;
                for sequence in warm_up..last {
                    due += period;
                    pause_until(due);
                    let start = Instant::now();
                    trip(sequence)?;
                    times.push(start.elapsed());
                }
            }
        }
        let elapsed = begin.elapsed();
        let cpu_ns = cpu_ns()?.saturating_sub(cpu);
        let compute_ns = compute_before.max(quiet::compute_ns());
        let memory_kib = own_memory_kib();
        Ok(Measured { sample: times.into_sample(elapsed), cpu_ns, compute_ns, memory_kib })
    }
}

/// A peer's server, about to be measured.
#[derive(Debug)]
pub struct ServerSession<'a> {
    job: &'a Job,
    /// To the client, for setting up.
    pub link: Link,
}

impl<'a> ServerSession<'a> {
    pub(crate) fn new(job: &'a Job, link: Link) -> Self {
        ServerSession { job, link }
    }

    /// What is measured.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.job.case
    }

    /// When to give up.
    #[must_use]
    pub fn deadline(&self) -> fmq::Deadline {
        fmq::Deadline::after(self.job.limit)
    }

    /// Calls `serve` once per request; it waits for one, does the [`Work`], and answers.
    ///
    /// # Errors
    /// Those of `serve` and of the link.
    pub fn run(
        mut self,
        mut serve: impl FnMut(&Work) -> Result<(), HarnessError>,
    ) -> Result<Served, HarnessError> {
        let work = Work { service: Duration::from_nanos(self.job.case.service_ns) };
        let compute_before = quiet::compute_ns();
        begin(&mut self.link, self.job)?;
        for _ in 0..self.job.warm_up {
            serve(&work)?;
        }
        let cpu = cpu_ns()?;
        for _ in 0..self.job.trips {
            serve(&work)?;
        }
        let cpu_ns = cpu_ns()?.saturating_sub(cpu);
        let compute_ns = compute_before.max(quiet::compute_ns());
        Ok(Served { cpu_ns, compute_ns, memory_kib: own_memory_kib() })
    }
}

/// Waits for the other end; then a cold run has other work behind it, at both ends at the same time.
fn begin(link: &mut Link, job: &Job) -> Result<(), HarnessError> {
    link.meet()?;
    if job.case.cold {
        work::other_work();
    }
    Ok(())
}

/// What the server does with a request.
#[derive(Debug)]
pub struct Work {
    service: Duration,
}

impl Work {
    /// Reads the whole request and makes the answer; takes as long as the case says.
    #[inline]
    #[must_use]
    pub fn answer(&self, request: &[u8]) -> AnswerBytes {
        let answer = work::answer(request);
        self.serve();
        answer
    }

    /// The answer to a request whose words were read and added up already.
    #[inline]
    #[must_use]
    pub fn answer_to(&self, sequence: u64, sum: u64) -> AnswerBytes {
        self.serve();
        work::reply(sequence, sum)
    }

    /// Only takes as long as the case says, for peers with a form of their own.
    #[inline]
    pub fn serve(&self) {
        work::serve_for(self.service);
    }
}

/// Sleeping is no use below what the kernel's timers are late by (50 us unless told otherwise).
const SLEEPS_ABOVE: Duration = Duration::from_micros(100);

/// Until a request is due.
fn pause_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > SLEEPS_ABOVE {
        std::thread::sleep(left);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

fn own_memory_kib() -> Option<u64> {
    peak_memory_kib(std::process::id())
}

/// CPU time of this process so far, in user and kernel mode.
fn cpu_ns() -> Result<u64, HarnessError> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|errno| HarnessError::System {
        call: "getrusage",
        errno: burst_shm::Errno::from_raw_os_error(errno as i32),
    })?;
    let ns = (usage.user_time() + usage.system_time()).num_nanoseconds();
    Ok(u64::try_from(ns).unwrap_or(0))
}
