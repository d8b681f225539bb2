//! A second process: this very test binary, started again as one of its own (ignored) tests, with a
//! socket as its standard input. Descriptors travel over that socket.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use fmq::{Descriptor, Grantor};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Most descriptors in one message here.
const FDS: usize = 8;

/// A child that never outlives its test, pass or fail.
pub struct Peer {
    child: Child,
    pub socket: Socket,
}

impl Peer {
    /// Starts the ignored test `name` of this binary as a process of its own.
    pub fn start(name: &str) -> Peer {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Peer { child, socket: Socket(ours) }
    }

    /// Sends a command and gives the answer; a child that died is a failure.
    pub fn ask(&self, command: &str) -> String {
        self.socket.send(command, None);
        self.answer()
    }

    pub fn answer(&self) -> String {
        self.socket.receive().expect("the other process died").0
    }

    /// As `ask`, for a queue.
    pub fn ask_for_queue(&self, command: &str) -> Descriptor {
        self.socket.send(command, None);
        self.socket.receive().expect("the other process died").1.expect("a descriptor")
    }

    /// Waits for its end; whether its test passed.
    pub fn finish(mut self) -> bool {
        drop(std::mem::replace(&mut self.socket, Socket::closed()));
        self.child.wait().unwrap().success()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One end of the connection.
pub struct Socket(OwnedFd);

impl Socket {
    /// The child's end: its standard input.
    pub fn of_child() -> Socket {
        Socket(std::io::stdin().as_fd().try_clone_to_owned().unwrap())
    }

    fn closed() -> Socket {
        Socket(std::fs::File::open("/dev/null").unwrap().into())
    }

    pub fn send(&self, text: &str, queue: Option<&Descriptor>) {
        let mut body = vec![u8::try_from(text.len()).unwrap()];
        body.extend(text.as_bytes());
        body.extend(queue.map(encode).unwrap_or_default());
        let fds: Vec<BorrowedFd<'_>> =
            queue.map_or(Vec::new(), |queue| queue.fds.iter().map(AsFd::as_fd).collect());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        sendmsg(&self.0, &[IoSlice::new(&body)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    /// The next message; `None` when the other side is gone.
    pub fn receive(&self) -> Option<(String, Option<Descriptor>)> {
        let mut body = vec![0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(&self.0, &mut [IoSliceMut::new(&mut body)], &mut control, flags).ok()?;
        if got.bytes == 0 {
            return None;
        }
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        let (text, rest) = body[1..got.bytes].split_at(usize::from(body[0]));
        let text = String::from_utf8(text.to_vec()).unwrap();
        let queue = (!rest.is_empty()).then(|| decode(rest, fds));
        Some((text, queue))
    }
}

/// A list of numbers: quantum, flags, then four per grantor.
fn encode(queue: &Descriptor) -> Vec<u8> {
    let mut numbers = vec![u64::from(queue.quantum), u64::from(queue.flags)];
    for Grantor { flags, fd_index, offset, extent } in &queue.grantors {
        numbers.extend([u64::from(*flags), u64::from(*fd_index), u64::from(*offset), *extent]);
    }
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn decode(bytes: &[u8], fds: Vec<OwnedFd>) -> Descriptor {
    let numbers: Vec<u64> =
        bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect();
    let small = |n: u64| u32::try_from(n).unwrap();
    let grantors = numbers[2..].chunks_exact(4).map(|g| Grantor {
        flags: small(g[0]),
        fd_index: small(g[1]),
        offset: small(g[2]),
        extent: g[3],
    });
    let (quantum, flags) = (small(numbers[0]), small(numbers[1]));
    Descriptor { grantors: grantors.collect(), fds, quantum, flags }
}
