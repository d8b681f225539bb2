//! A Unix socket that keeps messages apart.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::{Case, REQUEST_MAX};
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::AnswerBytes;
use crate::wait::WaitKind;

/// Messages that a socket always takes without blocking (its queue holds ten and more).
const IN_FLIGHT_MAX: u32 = 8;

/// A `SOCK_SEQPACKET` pair.
#[derive(Debug)]
pub struct Seqpacket;

impl Peer for Seqpacket {
    fn name(&self) -> &'static str {
        "unix-seqpacket"
    }

    fn supports(&self, case: &Case) -> bool {
        case.wait == WaitKind::Sleep
            && case.request_bytes <= REQUEST_MAX
            && case.in_flight <= IN_FLIGHT_MAX
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let (ours, theirs) = burst_wire::socket::pair()?;
        session.link.send(&(), &[theirs.as_fd()])?;
        session.run(&mut End(ours))
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [socket] = session.link.receive_fds()?;
        let mut request = vec![0; session.case().request_bytes];
        session.run(|work| {
            receive_whole(&socket, &mut request)?;
            send_whole(&socket, &work.answer(&request))
        })
    }
}

struct End(OwnedFd);

impl ClientEnd for End {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        send_whole(&self.0, request)
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        receive_whole(&self.0, answer)
    }
}

fn send_whole(socket: &OwnedFd, bytes: &[u8]) -> Result<(), HarnessError> {
    let sent = io::retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL));
    whole(sent.map_err(HarnessError::system("send"))?, bytes.len())
}

fn receive_whole(socket: &OwnedFd, bytes: &mut [u8]) -> Result<(), HarnessError> {
    let expected = bytes.len();
    let received = io::retry_on_intr(|| recv(socket, &mut *bytes, RecvFlags::empty()));
    whole(received.map_err(HarnessError::system("recv"))?.0, expected)
}

fn whole(got: usize, expected: usize) -> Result<(), HarnessError> {
    if got == expected { Ok(()) } else { Err(HarnessError::WrongLength { got, expected }) }
}
