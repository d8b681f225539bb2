//! The floors of spinning: a word goes to and fro, in two cache lines or in one. What has a queue each way
//! cannot be faster than two lines travel, except by polling more gently than these loops do.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared};

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::names;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};
use crate::wait::WaitKind;

/// An 8-byte word, stored and polled by both: the least that two processes can exchange, though no queue
/// works so.
#[derive(Debug)]
pub struct LineFloor;

/// One word each way, in lines of their own, as two queues have them: slower, as each store has to take its
/// line back from the other end's poll.
#[derive(Debug)]
pub struct TwoLines;

impl Peer for LineFloor {
    fn name(&self) -> &'static str {
        names::LINE_FLOOR
    }

    fn supports(&self, case: &Case) -> bool {
        polls(case)
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(8)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        client(session, 0)
    }

    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError> {
        server(session, 0)
    }
}

impl Peer for TwoLines {
    fn name(&self) -> &'static str {
        names::TWO_LINES
    }

    fn supports(&self, case: &Case) -> bool {
        polls(case)
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(8)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        client(session, ANSWER_AT)
    }

    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError> {
        server(session, ANSWER_AT)
    }
}

/// Far enough that no processor fetches both lines together.
const ANSWER_AT: usize = 1024;

pub(super) fn polls(case: &Case) -> bool {
    case.wait == WaitKind::Spin && !case.spins_in_vain() && case.in_flight == 1
}

fn client(session: ClientSession<'_>, answer_at: usize) -> Result<Measured, HarnessError> {
    let memory = Memory::create("floor", 4096)?;
    session.link.send(&(), &[memory.as_fd()])?;
    let (request, answer) = (word(&memory, 0)?, word(&memory, answer_at)?);
    session.run_trips(|sequence| {
        request.store(sequence * 2 + 1, Ordering::Release);
        wait_for(&answer, sequence * 2 + 2);
        Ok(())
    })
}

fn server(mut session: ServerSession<'_>, answer_at: usize) -> Result<Served, HarnessError> {
    let [fd] = session.link.receive_fds()?;
    let memory = Memory::from_fd(fd)?;
    let (request, answer) = (word(&memory, 0)?, word(&memory, answer_at)?);
    let mut expected = 1;
    session.run(|work| {
        wait_for(&request, expected);
        work.serve();
        answer.store(expected + 1, Ordering::Release);
        expected += 2;
        Ok(())
    })
}

fn word(memory: &Memory, at: usize) -> Result<Shared<AtomicU64>, HarnessError> {
    Ok(Shared::new(Arc::new(Mapping::map(memory)?), at)?)
}

/// As tight as it can be: without a pause, a clock, or a limit. The coordinator ends a process that
/// waits in vain.
#[inline]
pub(super) fn wait_for(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {}
}
