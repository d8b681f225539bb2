//! Frames: too large to copy through a ring, so they lie in memory that both processes have mapped
//! and only offset and length travel.
//!
//! | peer | the frame | the message |
//! |---|---|---|
//! | [`FramePlain`] | written, then read to the last byte | a bare word; the least there can be |
//! | [`FrameOurs`] | the same | a request and an answer in our queues |
//! | [`FrameInPool`] | was there before, as after a camera's DMA; not touched but for its ends | the same |
//! | [`FrameStream`] | sent and received | the frame itself, through a Unix socket |
//!
//! Reading means copying out in blocks that stay in the first-level cache and adding up each block:
//! memory that another process can write is never borrowed.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared, SharedRegion};
use fmq::{Consumer, Deadline, Producer, QueueConfig};

use super::Peer;
use super::ours::{ITEM, ITEMS, attach_pair, create_pair};
use crate::error::HarnessError;
use crate::transport::case::FRAME_BYTES;
use crate::transport::case::{ANSWER_BYTES, Case, Placement};
use crate::transport::names;
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::{self, AnswerBytes, Request};
use crate::wait::WaitKind;

/// Bytes copied out at a time: half of a usual first-level cache.
const BLOCK: usize = 16 << 10;
/// Bytes of a message that says where a frame lies.
const MESSAGE: usize = 64;
/// In front of a frame, for a word and an answer with cache lines of their own.
const HEADER: usize = 4096;
const WORD_AT: usize = 0;
const ANSWER_AT: usize = 256;

fn is_frame(case: &Case, wait: WaitKind) -> bool {
    FRAME_BYTES.contains(&case.request_bytes)
        && case.wait == wait
        && case.placement == Placement::PinnedApart
        && case.in_flight == 1
}

/// The memory of one frame.
struct Pool {
    word: Shared<AtomicU64>,
    answer: SharedRegion,
    frame: SharedRegion,
}

impl Pool {
    fn create(len: usize) -> Result<Memory, HarnessError> {
        Ok(Memory::create("frame", HEADER + len)?)
    }

    fn map(memory: &Memory, len: usize) -> Result<Pool, HarnessError> {
        let mapping = Arc::new(Mapping::map(memory)?);
        Ok(Pool {
            word: Shared::new(Arc::clone(&mapping), WORD_AT)?,
            answer: SharedRegion::new(Arc::clone(&mapping), ANSWER_AT, ANSWER_BYTES)?,
            frame: SharedRegion::new(mapping, HEADER, len)?,
        })
    }
}

/// Reads a whole frame; its first word and the sum of all.
fn read_all(frame: &SharedRegion, block: &mut [u8; BLOCK]) -> Result<(u64, u64), HarnessError> {
    let frame = frame.region();
    let mut first = [0; 8];
    frame.copy_out(0, &mut first)?;
    let (mut at, mut sum) = (0, 0_u64);
    while at < frame.len() {
        let part = &mut block[..BLOCK.min(frame.len() - at)];
        frame.copy_out(at, part)?;
        sum = sum.wrapping_add(work::sum(part));
        at += part.len();
    }
    Ok((u64::from_le_bytes(first), sum))
}

/// A frame in shared memory and a bare word beside it.
#[derive(Debug)]
pub struct FramePlain;

impl Peer for FramePlain {
    fn name(&self) -> &'static str {
        names::FRAME_FLOOR
    }

    fn supports(&self, case: &Case) -> bool {
        is_frame(case, WaitKind::Spin)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let len = session.case().request_bytes;
        let memory = Pool::create(len)?;
        session.link.send(&(), &[memory.as_fd()])?;
        session.run(&mut PlainEnd { pool: Pool::map(&memory, len)?, value: 0 })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [fd] = session.link.receive_fds()?;
        let pool = Pool::map(&Memory::from_fd(fd)?, session.case().request_bytes)?;
        let mut block = [0; BLOCK];
        let mut value = 0;
        session.run(|work| {
            super::line::wait_for(&pool.word, value + 1);
            let (sequence, sum) = read_all(&pool.frame, &mut block)?;
            pool.answer.region().copy_in(0, &work.answer_to(sequence, sum))?;
            value += 2;
            pool.word.store(value, Ordering::Release);
            Ok(())
        })
    }
}

struct PlainEnd {
    pool: Pool,
    value: u64,
}

impl ClientEnd for PlainEnd {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        self.pool.frame.region().copy_in(0, request)?;
        self.pool.word.store(self.value + 1, Ordering::Release);
        Ok(())
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        self.value += 2;
        super::line::wait_for(&self.pool.word, self.value);
        Ok(self.pool.answer.region().copy_out(0, answer)?)
    }
}

/// A message about a frame: its number, where it begins, how long it is.
fn message(sequence: u64, len: usize) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    for (to, word) in bytes.chunks_exact_mut(8).zip([sequence, 0, len as u64]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Number of the frame, and the frame, where that lies inside the pool.
fn named<'p>(
    message: &[u8; MESSAGE],
    pool: &'p Pool,
) -> Result<(u64, burst_shm::Region<'p>), HarnessError> {
    let words = message.as_chunks::<8>().0;
    let [sequence, offset, len] = [0, 1, 2].map(|index| u64::from_le_bytes(words[index]));
    let bytes = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Ok((sequence, pool.frame.region().subregion(bytes(offset), bytes(len))?))
}

/// A frame in shared memory, its offset and length in our queues.
#[derive(Debug)]
pub struct FrameOurs;

impl Peer for FrameOurs {
    fn name(&self) -> &'static str {
        names::FRAME
    }

    fn supports(&self, case: &Case) -> bool {
        is_frame(case, WaitKind::Spin)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let mut end = QueueEnd::new(&session)?;
        session.run(&mut end)
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let (pool, mut requests, mut answers, deadline) = attach(&mut session)?;
        let mut block = [0; BLOCK];
        let mut message = [0; MESSAGE];
        session.run(|work| {
            requests.wait(MESSAGE / ITEM, deadline)?;
            requests.read_deferred(&mut message)?;
            named(&message, &pool)?;
            let (sequence, sum) = read_all(&pool.frame, &mut block)?;
            answers.write_quiet(&work.answer_to(sequence, sum))?;
            answers.wake()?;
            requests.release_quiet();
            Ok(())
        })
    }
}

struct QueueEnd {
    pool: Pool,
    requests: Producer,
    answers: Consumer,
    deadline: Deadline,
}

impl QueueEnd {
    fn new(session: &ClientSession<'_>) -> Result<QueueEnd, HarnessError> {
        let len = session.case().request_bytes;
        let memory = Pool::create(len)?;
        session.link.send(&(), &[memory.as_fd()])?;
        let config = QueueConfig::new(ITEM, ITEMS);
        let (requests, answers) = create_pair(&session.link, session.case(), &config)?;
        let pool = Pool::map(&memory, len)?;
        Ok(QueueEnd { pool, requests, answers, deadline: session.deadline() })
    }

    fn tell(&mut self, sequence: u64) -> Result<(), HarnessError> {
        self.requests.write_quiet(&message(sequence, self.pool.frame.region().len()))?;
        Ok(self.requests.wake()?)
    }
}

impl ClientEnd for QueueEnd {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        self.pool.frame.region().copy_in(0, request)?;
        let sequence = request.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        self.tell(sequence)
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        self.answers.wait(ANSWER_BYTES / ITEM, self.deadline)?;
        Ok(self.answers.read_quiet(answer)?)
    }
}

fn attach(
    session: &mut ServerSession<'_>,
) -> Result<(Pool, Consumer, Producer, Deadline), HarnessError> {
    let case = *session.case();
    let [fd] = session.link.receive_fds()?;
    let pool = Pool::map(&Memory::from_fd(fd)?, case.request_bytes)?;
    let (requests, answers) = attach_pair(&mut session.link, &case)?;
    Ok((pool, requests, answers, session.deadline()))
}

/// A frame that lies in the pool already, named in a message.
#[derive(Debug)]
pub struct FrameInPool;

/// The answer's sum for a frame that is only named: its first and its last word.
fn ends_sum(frame: burst_shm::Region<'_>) -> Result<u64, HarnessError> {
    let (mut first, mut last) = ([0; 8], [0; 8]);
    frame.copy_out(0, &mut first)?;
    frame.copy_out(frame.len().saturating_sub(8), &mut last)?;
    Ok(u64::from_le_bytes(first).wrapping_add(u64::from_le_bytes(last)))
}

impl Peer for FrameInPool {
    fn name(&self) -> &'static str {
        names::FRAME_IN_POOL
    }

    fn supports(&self, case: &Case) -> bool {
        is_frame(case, WaitKind::Spin)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let mut end = QueueEnd::new(&session)?;
        let frame = Request::new(session.case().request_bytes);
        end.pool.frame.region().copy_in(0, frame.bytes())?;
        let sum = ends_sum(end.pool.frame.region())?;
        let mut answer = [0; ANSWER_BYTES];
        session.run_trips(|sequence| {
            end.tell(sequence)?;
            end.receive(&mut answer)?;
            work::check_answer(sequence, sum, &answer)
        })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let (pool, mut requests, mut answers, deadline) = attach(&mut session)?;
        let mut message = [0; MESSAGE];
        session.run(|work| {
            requests.wait(MESSAGE / ITEM, deadline)?;
            requests.read_deferred(&mut message)?;
            let (sequence, frame) = named(&message, &pool)?;
            answers.write_quiet(&work.answer_to(sequence, ends_sum(frame)?))?;
            answers.wake()?;
            requests.release_quiet();
            Ok(())
        })
    }
}

/// A frame through a Unix stream socket.
#[derive(Debug)]
pub struct FrameStream;

impl Peer for FrameStream {
    fn name(&self) -> &'static str {
        "frame-unix-stream"
    }

    fn supports(&self, case: &Case) -> bool {
        is_frame(case, WaitKind::Sleep)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let (ours, theirs) = UnixStream::pair()?;
        session.link.send(&(), &[theirs.as_fd()])?;
        session.run(&mut StreamEnd(ours))
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [socket] = session.link.receive_fds()?;
        let mut socket = UnixStream::from(socket);
        let mut frame = vec![0; session.case().request_bytes];
        session.run(|work| {
            socket.read_exact(&mut frame)?;
            Ok(socket.write_all(&work.answer(&frame))?)
        })
    }
}

struct StreamEnd(UnixStream);

impl ClientEnd for StreamEnd {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        Ok(self.0.write_all(request)?)
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        Ok(self.0.read_exact(answer)?)
    }
}
