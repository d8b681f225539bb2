//! Two pipes, one each way.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io;
use rustix::pipe::{PipeFlags, pipe_with};

use super::Peer;
use crate::error::HarnessError;
use crate::transport::case::{Case, REQUEST_MAX};
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::AnswerBytes;
use crate::wait::WaitKind;

/// Bytes that always fit an empty pipe.
const PIPE_BYTES: usize = 64 << 10;

/// Two pipes.
#[derive(Debug)]
pub struct Pipe;

impl Peer for Pipe {
    fn name(&self) -> &'static str {
        "pipe"
    }

    fn supports(&self, case: &Case) -> bool {
        let bytes = case.request_bytes.saturating_mul(case.in_flight as usize);
        case.wait == WaitKind::Sleep && case.request_bytes <= REQUEST_MAX && bytes <= PIPE_BYTES
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let make = || pipe_with(PipeFlags::CLOEXEC).map_err(HarnessError::system("pipe2"));
        let ((request_out, request_in), (answer_out, answer_in)) = (make()?, make()?);
        session.link.send(&(), &[request_out.as_fd(), answer_in.as_fd()])?;
        session.run(&mut End { requests: request_in, answers: answer_out })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [requests, answers] = session.link.receive_fds()?;
        let mut request = vec![0; session.case().request_bytes];
        session.run(|work| {
            read_all(&requests, &mut request)?;
            write_all(&answers, &work.answer(&request))
        })
    }
}

struct End {
    requests: OwnedFd,
    answers: OwnedFd,
}

impl ClientEnd for End {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        write_all(&self.requests, request)
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        read_all(&self.answers, answer)
    }
}

/// What the kernel promises to write in one piece (`PIPE_BUF`, 4096) is never split here.
fn write_all(fd: &OwnedFd, bytes: &[u8]) -> Result<(), HarnessError> {
    let written =
        io::retry_on_intr(|| io::write(fd, bytes)).map_err(HarnessError::system("write"))?;
    whole(written, bytes.len())
}

/// Reads exactly so much: with several requests in flight more may be there.
fn read_all(fd: &OwnedFd, bytes: &mut [u8]) -> Result<(), HarnessError> {
    let wanted = bytes.len();
    let read =
        io::retry_on_intr(|| io::read(fd, &mut *bytes)).map_err(HarnessError::system("read"))?;
    whole(read, wanted)
}

fn whole(got: usize, expected: usize) -> Result<(), HarnessError> {
    if got == expected { Ok(()) } else { Err(HarnessError::WrongLength { got, expected }) }
}
