//! shmem-ipc: a ring of typed values with two eventfds.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use burst_harness::transport::names;
use burst_harness::transport::session::{Measured, Served};
use burst_harness::transport::work::AnswerBytes;
use burst_harness::{
    Case, ClientEnd, ClientSession, HarnessError, Link, Peer, ServerSession, WaitKind,
};
use shmem_ipc::sharedring::{Receiver, Sender};

use super::{has_size, sized};

/// Values in a ring. One message is one value, so that none is ever cut in two at the ring's end.
const VALUES: usize = 16;

/// Two rings of shmem-ipc.
#[derive(Debug)]
pub struct ShmemIpc;

impl Peer for ShmemIpc {
    fn name(&self) -> &'static str {
        names::SHMEM_IPC
    }

    fn supports(&self, case: &Case) -> bool {
        has_size(case.request_bytes)
            && case.in_flight as usize <= VALUES
            && case.wait != WaitKind::Adaptive
            && !case.spins_in_vain()
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        match session.case().request_bytes {
            64 => of_64::client(session),
            256 => of_256::client(session),
            1024 => of_1024::client(session),
            got => Err(HarnessError::WrongLength { got, expected: 1024 }),
        }
    }

    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError> {
        match session.case().request_bytes {
            64 => of_64::server(session),
            256 => of_256::server(session),
            1024 => of_1024::server(session),
            got => Err(HarnessError::WrongLength { got, expected: 1024 }),
        }
    }
}

fn send_ring(link: &Link, files: [&File; 3]) -> Result<(), HarnessError> {
    link.send(&(), &files.map(AsFd::as_fd))
}

fn receive_ring(link: &mut Link) -> Result<[File; 3], HarnessError> {
    Ok(link.receive_fds::<3>()?.map(File::from))
}

/// Until there is a value: polling its count, or sleeping on the eventfd.
macro_rules! wait_for {
    ($wait:expr, $ring:expr) => {
        match $wait {
            WaitKind::Sleep => {
                $ring.block_until_readable().map_err(HarnessError::peer)?;
            }
            _ => while $ring.receiver_mut().read_count().map_err(HarnessError::peer)? == 0 {},
        }
    };
}

/// The crate's rings are made for types with traits of an old zerocopy, which arrays of any length
/// do not have: so one module per size, not a generic.
macro_rules! rings_of {
    ($module:ident, $bytes:literal) => {
        mod $module {
            use super::*;

            type Request = [u8; $bytes];

            struct End {
                requests: Sender<Request>,
                answers: Receiver<AnswerBytes>,
                wait: WaitKind,
            }

            pub(super) fn client(session: ClientSession<'_>) -> Result<Measured, HarnessError> {
                let requests = Sender::new(VALUES).map_err(HarnessError::peer)?;
                let answers = Receiver::new(VALUES).map_err(HarnessError::peer)?;
                let (memory, empty, full) =
                    (requests.memfd().as_file(), requests.empty_signal(), requests.full_signal());
                send_ring(&session.link, [memory, empty, full])?;
                let (memory, empty, full) =
                    (answers.memfd().as_file(), answers.empty_signal(), answers.full_signal());
                send_ring(&session.link, [memory, empty, full])?;
                let wait = session.case().wait;
                session.run(&mut End { requests, answers, wait })
            }

            impl ClientEnd for End {
                #[inline]
                fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
                    let request: &Request = sized(request)?;
                    let status = self.requests.sender_mut().send_foreach(1, || *request);
                    ring_bell(self.wait, status.signal, self.requests.empty_signal())
                }

                #[inline]
                fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
                    wait_for!(self.wait, self.answers);
                    self.answers.receiver_mut().recv_foreach(1, |bytes| *answer = bytes);
                    Ok(())
                }
            }

            pub(super) fn server(mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
                let wait = session.case().wait;
                let [memory, empty, full] = receive_ring(&mut session.link)?;
                let mut requests: Receiver<Request> =
                    Receiver::open(VALUES, memory, empty, full).map_err(HarnessError::peer)?;
                let [memory, empty, full] = receive_ring(&mut session.link)?;
                let mut answers: Sender<AnswerBytes> =
                    Sender::open(VALUES, memory, empty, full).map_err(HarnessError::peer)?;
                let mut request = [0; $bytes];
                session.run(|work| {
                    wait_for!(wait, requests);
                    requests.receiver_mut().recv_foreach(1, |bytes| request = bytes);
                    let answer = work.answer(&request);
                    let status = answers.sender_mut().send_foreach(1, || answer);
                    ring_bell(wait, status.signal, answers.empty_signal())
                })
            }
        }
    };
}

rings_of!(of_64, 64);
rings_of!(of_256, 256);
rings_of!(of_1024, 1024);

/// Rings where the reader may sleep: the crate itself would do so after every write to an empty
/// ring; a reader that polls needs none of it.
#[inline]
fn ring_bell(wait: WaitKind, was_empty: bool, mut bell: &File) -> Result<(), HarnessError> {
    if wait == WaitKind::Sleep && was_empty {
        bell.write_all(&1_u64.to_ne_bytes())?;
    }
    Ok(())
}
