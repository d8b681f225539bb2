//! The floor of spinning: one word in one cache line goes to and fro. No queue can be faster than
//! the line travels, except by polling more gently than this loop does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared};
use std::os::fd::AsFd;

use super::Peer;
use crate::case::{Case, WaitKind};
use crate::error::HarnessError;
use crate::session::{ClientSession, Measured, Served, ServerSession};

/// An 8-byte word, stored and polled by both.
#[derive(Debug)]
pub struct LineFloor;

impl Peer for LineFloor {
    fn name(&self) -> &'static str {
        "floor-line"
    }

    fn supports(&self, case: &Case) -> bool {
        case.wait == WaitKind::Spin && !case.spins_in_vain() && case.in_flight == 1
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(8)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let memory = Memory::create("floor", 4096)?;
        session.link.send(&(), &[memory.as_fd()])?;
        let word = word(&memory)?;
        session.run_trips(|sequence| {
            word.store(sequence * 2 + 1, Ordering::Release);
            wait_for(&word, sequence * 2 + 2);
            Ok(())
        })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [fd] = session.link.receive_fds()?;
        let word = word(&Memory::from_fd(fd)?)?;
        let mut expected = 1;
        session.run(|work| {
            wait_for(&word, expected);
            work.serve();
            word.store(expected + 1, Ordering::Release);
            expected += 2;
            Ok(())
        })
    }
}

fn word(memory: &Memory) -> Result<Shared<AtomicU64>, HarnessError> {
    Ok(Shared::new(Arc::new(Mapping::map(memory)?), 0)?)
}

/// As tight as it can be: without a pause, a clock, or a limit. The coordinator ends a process that
/// waits in vain.
#[inline]
pub(super) fn wait_for(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {}
}
