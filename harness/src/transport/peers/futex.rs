//! The floor of sleeping: one word goes back and forth, and the end that waits for it sleeps in the
//! kernel.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use burst_shm::{Errno, Mapping, Memory, Shared};
use rustix::thread::futex::{self, Flags};

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::names;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};
use crate::wait::WaitKind;

/// A 4-byte word with a futex on it.
#[derive(Debug)]
pub struct FutexFloor;

impl Peer for FutexFloor {
    fn name(&self) -> &'static str {
        names::FUTEX_FLOOR
    }

    fn supports(&self, case: &Case) -> bool {
        case.wait == WaitKind::Sleep && case.in_flight == 1
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(4)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let memory = Memory::create("floor", 4096)?;
        session.link.send(&(), &[memory.as_fd()])?;
        let word = word(&memory)?;
        let mut value: u32 = 0;
        session.run_trips(|_| {
            give(&word, value.wrapping_add(1))?;
            value = value.wrapping_add(2);
            wait_for(&word, value)
        })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [fd] = session.link.receive_fds()?;
        let word = word(&Memory::from_fd(fd)?)?;
        let mut value: u32 = 0;
        session.run(|work| {
            wait_for(&word, value.wrapping_add(1))?;
            work.serve();
            value = value.wrapping_add(2);
            give(&word, value)
        })
    }
}

fn word(memory: &Memory) -> Result<Shared<AtomicU32>, HarnessError> {
    Ok(Shared::new(Arc::new(Mapping::map(memory)?), 0)?)
}

fn give(word: &AtomicU32, value: u32) -> Result<(), HarnessError> {
    word.store(value, Ordering::SeqCst);
    futex::wake(word, Flags::empty(), 1).map_err(HarnessError::system("futex wake"))?;
    Ok(())
}

fn wait_for(word: &AtomicU32, value: u32) -> Result<(), HarnessError> {
    loop {
        let seen = word.load(Ordering::SeqCst);
        if seen == value {
            return Ok(());
        }
        match futex::wait(word, Flags::empty(), seen, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(HarnessError::System { call: "futex wait", errno }),
        }
    }
}
