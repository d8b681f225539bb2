//! The floor of sleeping where the waiting end also wants to poll descriptors: two eventfds.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};
use crate::wait::WaitKind;

/// Two counters of the kernel, one each way.
#[derive(Debug)]
pub struct EventfdFloor;

impl Peer for EventfdFloor {
    fn name(&self) -> &'static str {
        "floor-eventfd"
    }

    fn supports(&self, case: &Case) -> bool {
        case.wait == WaitKind::Sleep && case.in_flight == 1
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(8)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let make = || eventfd(0, EventfdFlags::CLOEXEC).map_err(HarnessError::system("eventfd"));
        let (request, answer) = (make()?, make()?);
        session.link.send(&(), &[request.as_fd(), answer.as_fd()])?;
        session.run_trips(|_| {
            ring(&request)?;
            listen(&answer)
        })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [request, answer] = session.link.receive_fds()?;
        session.run(|work| {
            listen(&request)?;
            work.serve();
            ring(&answer)
        })
    }
}

fn ring(fd: &OwnedFd) -> Result<(), HarnessError> {
    io::write(fd, &1_u64.to_ne_bytes()).map_err(HarnessError::system("write"))?;
    Ok(())
}

/// One ring per message: more would mean that an end did not wait for the other.
fn listen(fd: &OwnedFd) -> Result<(), HarnessError> {
    let mut count = [0; 8];
    let read = io::retry_on_intr(|| io::read(fd, &mut count[..]));
    let got = read.map_err(HarnessError::system("read"))?;
    match u64::from_ne_bytes(count) {
        1 if got == count.len() => Ok(()),
        _ => Err(HarnessError::Handshake { expected: "one ring per message" }),
    }
}
