//! The floor of carrying bytes: a mailbox that holds one message, and a flag in a line of its own.
//! No queue, no wrap, no sleeping, the same lines each time. What a queue takes more than this is
//! the queue's; what this takes more than a bare line is the machine's.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared, SharedRegion};

use super::Peer;
use super::line::{polls, wait_for};
use crate::error::HarnessError;
use crate::transport::case::{ANSWER_BYTES, Case, REQUEST_MAX};
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::AnswerBytes;

/// Payload and flag, each way.
#[derive(Debug)]
pub struct Mailbox;

impl Peer for Mailbox {
    fn name(&self) -> &'static str {
        "floor-mailbox"
    }

    fn supports(&self, case: &Case) -> bool {
        polls(case) && case.request_bytes <= REQUEST_MAX
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let memory = Memory::create("mailbox", 4096)?;
        session.link.send(&(), &[memory.as_fd()])?;
        session.run(&mut boxes(&memory)?)
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [fd] = session.link.receive_fds()?;
        let Boxes { mut requests, mut answers } = boxes(&Memory::from_fd(fd)?)?;
        let mut request = vec![0; session.case().request_bytes];
        session.run(|work| {
            requests.take(&mut request)?;
            answers.put(&work.answer(&request))
        })
    }
}

/// Where the flags and the messages lie: far enough from each other that no processor fetches two
/// of them together.
const REQUEST_FLAG_AT: usize = 0;
const ANSWER_FLAG_AT: usize = 256;
const ANSWER_AT: usize = 512;
const REQUEST_AT: usize = 1024;

/// Both directions.
struct Boxes {
    requests: OneWay,
    answers: OneWay,
}

fn boxes(memory: &Memory) -> Result<Boxes, HarnessError> {
    let mapping = Arc::new(Mapping::map(memory)?);
    let one_way = |flag, at, len| {
        let flag = Shared::new(Arc::clone(&mapping), flag)?;
        let payload = SharedRegion::new(Arc::clone(&mapping), at, len)?;
        Ok::<_, HarnessError>(OneWay { flag, payload, sequence: 0 })
    };
    Ok(Boxes {
        requests: one_way(REQUEST_FLAG_AT, REQUEST_AT, REQUEST_MAX)?,
        answers: one_way(ANSWER_FLAG_AT, ANSWER_AT, ANSWER_BYTES)?,
    })
}

/// One end of one direction.
struct OneWay {
    flag: Shared<AtomicU64>,
    payload: SharedRegion,
    /// Messages so far.
    sequence: u64,
}

impl OneWay {
    #[inline]
    fn put(&mut self, message: &[u8]) -> Result<(), HarnessError> {
        self.payload.region().copy_in(0, message)?;
        self.sequence += 1;
        // Release: pairs with Acquire in `wait_for`; the payload first, then the flag.
        self.flag.store(self.sequence, Ordering::Release);
        Ok(())
    }

    /// With one message under way the other end writes no more before it has heard from us.
    #[inline]
    fn take(&mut self, message: &mut [u8]) -> Result<(), HarnessError> {
        self.sequence += 1;
        wait_for(&self.flag, self.sequence);
        Ok(self.payload.region().copy_out(0, message)?)
    }
}

impl ClientEnd for Boxes {
    #[inline]
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        self.requests.put(request)
    }

    #[inline]
    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        self.answers.take(answer)
    }
}
