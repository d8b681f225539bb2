//! A pair of our queues with bytes in them: what a program that uses `fmq` by itself gets.

use fmq::{Consumer, Deadline, Producer, QueueConfig};

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::{ANSWER_BYTES, Case};
use crate::transport::link::Link;
use crate::transport::names;
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::AnswerBytes;

/// Bytes of an item, for our queues and for libfmq's: a half cache line divides all messages.
pub(super) const ITEM: usize = 32;
/// Items of a ring: the largest request four times, and the small ones sixteen times over.
pub(super) const ITEMS: usize = 128;
/// Bytes that may be in flight.
pub(super) const RING_BYTES: usize = ITEM * ITEMS;

/// The other peers' waits have no time limit, which would cost a timer per sleep; so ours have none
/// here. The coordinator ends a process that waits in vain.
const NO_DEADLINE: Deadline = Deadline::never();

/// Two queues of ours, bytes in, bytes out.
#[derive(Debug)]
pub struct Ours;

impl Peer for Ours {
    fn name(&self) -> &'static str {
        names::OURS
    }

    fn supports(&self, case: &Case) -> bool {
        fits_rings(case) && !case.spins_in_vain()
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let deadline = NO_DEADLINE;
        let config = QueueConfig::new(ITEM, ITEMS);
        let (requests, answers) = create_pair(&session.link, session.case(), &config)?;
        session.run(&mut End { requests, answers, deadline })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let deadline = NO_DEADLINE;
        let case = *session.case();
        let (mut requests, mut answers) = attach_pair(&mut session.link, &case)?;
        let mut request = vec![0; case.request_bytes];
        session.run(|work| {
            requests.wait(case.request_bytes / ITEM, deadline)?;
            requests.read_deferred(&mut request)?;
            answers.write_quiet(&work.answer(&request))?;
            answers.wake()?;
            // After the answer is on its way; nobody waits for this room, see `RING_BYTES`.
            requests.release_quiet();
            Ok(())
        })
    }
}

/// Whether so much in flight never fills a ring.
pub(super) fn fits_rings(case: &Case) -> bool {
    let in_flight = case.in_flight as usize;
    case.request_bytes.max(ANSWER_BYTES).saturating_mul(in_flight) <= RING_BYTES
}

/// The client makes both queues and sends them.
pub(super) fn create_pair(
    link: &Link,
    case: &Case,
    config: &QueueConfig,
) -> Result<(Producer, Consumer), HarnessError> {
    let mut requests = Producer::create(config)?;
    let mut answers = Consumer::create(config)?;
    requests.set_wait(case.wait.into());
    answers.set_wait(case.wait.into());
    link.send_queue(&requests.descriptor()?)?;
    link.send_queue(&answers.descriptor()?)?;
    Ok((requests, answers))
}

/// The server's ends of [`create_pair`]'s queues.
pub(super) fn attach_pair(
    link: &mut Link,
    case: &Case,
) -> Result<(Consumer, Producer), HarnessError> {
    let mut requests = Consumer::attach(link.receive_queue()?)?;
    let mut answers = Producer::attach(link.receive_queue()?)?;
    requests.set_wait(case.wait.into());
    answers.set_wait(case.wait.into());
    Ok((requests, answers))
}

struct End {
    requests: Producer,
    answers: Consumer,
    deadline: Deadline,
}

impl ClientEnd for End {
    #[inline]
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        self.requests.write_quiet(request)?;
        Ok(self.requests.wake()?)
    }

    #[inline]
    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        self.answers.wait(ANSWER_BYTES / ITEM, self.deadline)?;
        Ok(self.answers.read_quiet(answer)?)
    }
}
