//! The socket, the greetings, calls and replies: sections 2 to 4 of the page.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::bytes::{Reader, Writer};

pub const MESSAGE_MAX: usize = 65_536;
pub const DESCRIPTORS_MAX: usize = 250;
/// Turns a hang into a failure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A packet of the service.
#[derive(Debug)]
pub struct Received {
    pub bytes: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

/// What a call came to: the number of the answer and its fields, with a tail where there is one.
pub type Outcome = Result<Received, Refusal>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: i32,
    pub reason: String,
    pub cause: u32,
}

/// What the service says without being called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    GetMemories { id: u64, burst: u32, slots: Vec<i32> },
    BurstEnded { burst: u32, reason: String },
}

#[derive(Debug, PartialEq, Eq)]
pub struct Greeting {
    pub version: u32,
    pub versions: [u32; 2],
    pub welcome: u32,
    pub features: u64,
    pub missing: u64,
    pub pid: u32,
    pub name: String,
    pub detail: String,
    pub limits: Vec<(u32, u64)>,
}

/// The version that this client was written for.
pub const VERSION: u32 = 2;

pub struct Connection {
    pub socket: OwnedFd,
    next: u64,
    notices: VecDeque<Notice>,
}

impl Connection {
    pub fn open(path: &Path) -> Self {
        let kind = SocketType::SEQPACKET;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        rustix::net::connect(&socket, &SocketAddrUnix::new(path).expect("a short path"))
            .expect("somebody listens");
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).expect("an option");
        Connection { socket, next: 7, notices: VecDeque::new() }
    }

    /// Says who we are and hears who they are.
    pub fn greet(&mut self, versions: [u32; 2], features: u64, required: u64) -> Greeting {
        let [oldest, newest] = versions;
        let fields = Writer::default().u32(oldest).u64(features).u64(required).text("a page");
        let hello = Writer::default().raw(b"burst-nn").u32(newest).record(&fields);
        self.send(&hello.0, &[]);
        let received = self.receive().expect("a greeting");
        let mut from = Reader(&received.bytes);
        assert_eq!(from.take(8), b"burst-nn");
        let version = from.u32();
        let mut record = from.record();
        from.end();
        Greeting {
            version,
            versions: [record.u32(), record.u32()],
            welcome: record.u32(),
            features: record.u64(),
            missing: record.u64(),
            pid: record.u32(),
            name: record.text(),
            detail: record.text(),
            limits: record.list(|from| (from.u32(), from.u64())),
        }
    }

    /// Greets as a client of this version that requires nothing.
    pub fn enter(&mut self, features: u64) -> Greeting {
        let greeting = self.greet([VERSION; 2], features, 0);
        assert_eq!((greeting.welcome, greeting.version), (0, VERSION), "{}", greeting.detail);
        greeting
    }

    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let parts = [IoSlice::new(bytes)];
        rustix::net::sendmsg(&self.socket, &parts, &mut control, SendFlags::NOSIGNAL)
            .expect("a reader");
    }

    /// The next packet; `None` after a hang-up.
    pub fn receive(&self) -> Option<Received> {
        let mut bytes = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags) {
            Err(rustix::io::Errno::CONNRESET) => return None,
            other => other.expect("a message in time"),
        };
        assert!(!received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC), "cut off");
        let mut descriptors = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        bytes.truncate(received.bytes);
        (!bytes.is_empty()).then_some(Received { bytes, descriptors })
    }

    /// Whether the service hangs up, after whatever it still has to say.
    pub fn is_hung_up(&self) -> bool {
        while self.receive().is_some() {}
        true
    }

    /// Makes a call and waits for its reply; what else comes meanwhile is kept.
    pub fn call(&mut self, number: u32, fields: Writer, with: &[BorrowedFd<'_>]) -> Outcome {
        let id = self.next;
        self.next += 1;
        let call = Writer::default().u64(id).kind(number, &fields);
        self.send(&Writer::default().kind(0, &call).0, with);
        self.reply(id)
    }

    /// Waits for the reply to a call; what else comes meanwhile is kept.
    pub fn reply(&mut self, id: u64) -> Outcome {
        loop {
            let received = self.receive().expect("a reply");
            let mut from = Reader(&received.bytes);
            let kind = from.u32();
            let mut message = from.record();
            from.end();
            if kind != 0 {
                self.notices.extend(notice(kind, message));
                continue;
            }
            assert_eq!(message.u64(), id, "one call at a time has its reply next");
            let outcome = message.u32();
            let mut fields = message.record();
            return match outcome {
                0 => {
                    // The number of the answer and its fields.
                    let number = fields.u32().to_le_bytes();
                    let bytes = [&number, fields.record().0].concat();
                    Ok(Received { bytes, descriptors: received.descriptors })
                }
                1 => Err(Refusal {
                    status: fields.i32(),
                    reason: fields.text(),
                    cause: fields.u32(),
                }),
                other => panic!("an outcome of kind {other}"),
            };
        }
    }

    /// As [`Connection::call`], for one that is done; gives the descriptors.
    #[track_caller]
    pub fn done(&mut self, variant: u32, fields: Writer, with: &[BorrowedFd<'_>]) -> Vec<OwnedFd> {
        let received = self.call(variant, fields, with).expect("not refused");
        let mut from = Reader(&received.bytes);
        assert_eq!(from.u32(), 0, "Done");
        received.descriptors
    }

    /// As [`Connection::call`], for one that is refused; gives the status.
    #[track_caller]
    pub fn refused(&mut self, variant: u32, fields: Writer, with: &[BorrowedFd<'_>]) -> i32 {
        let refusal = self.call(variant, fields, with).expect_err("refused");
        assert!(!refusal.reason.is_empty() && refusal.reason.len() <= 1024, "{refusal:?}");
        refusal.status
    }

    /// What the service says next without being called.
    pub fn notice(&mut self) -> Notice {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return notice;
            }
            let received = self.receive().expect("a notice");
            let mut from = Reader(&received.bytes);
            let kind = from.u32();
            self.notices.extend(notice(kind, from.record()));
            from.end();
        }
    }

    /// Answers a question for memories.
    pub fn memories(&self, id: u64, status: i32, memories: &[(u64, BorrowedFd<'_>)]) {
        let answer = Writer::default().u64(id).i32(status);
        let answer = answer.list(memories, |to, (length, _)| to.u64(*length));
        let answer = Writer::default().kind(1, &answer);
        let descriptors: Vec<BorrowedFd<'_>> = memories.iter().map(|(_, fd)| *fd).collect();
        self.send(&answer.0, &descriptors);
    }
}

/// What a message says that is no reply; nothing where it is of a kind that the page does not have.
fn notice(kind: u32, mut fields: Reader<'_>) -> Option<Notice> {
    match kind {
        1 => Some(Notice::GetMemories {
            id: fields.u64(),
            burst: fields.u32(),
            slots: fields.list(Reader::i32),
        }),
        2 => Some(Notice::BurstEnded { burst: fields.u32(), reason: fields.text() }),
        _ => None,
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
