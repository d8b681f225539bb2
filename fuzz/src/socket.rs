//! Packets with descriptors on the control socket, from a peer that keeps to no limit.
//!
//! Looked at: each packet arrives whole with all its descriptors, or is refused with none of them
//! kept; the next one is not disturbed; the end of the connection is told.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_wire::WireError;
use burst_wire::control::MESSAGE_MAX;
use burst_wire::socket::{DESCRIPTORS_MAX, Inbox, pair, receive, send, timed_out};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Most descriptors that the kernel takes with one packet.
const KERNEL_MAX: usize = 253;
/// Packets in flight: few enough for any socket's room.
const WAITING_MAX: usize = 3;
const STEPS_MAX: usize = 24;

/// A packet that is on its way, as the receiver must see it.
struct Sent {
    bytes: Vec<u8>,
    descriptors: usize,
}

/// Runs a script of sends and receives.
pub fn run(data: &[u8]) -> bool {
    let leaks = Leaks::watch();
    let mut input = Input::new(data);
    let received = converse(&mut input);
    leaks.check();
    received > 0
}

fn converse(input: &mut Input<'_>) -> usize {
    let (ours, theirs) = pair().unwrap();
    // As after a time-out that was set, without the wait.
    rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).unwrap();
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let mut inbox = Inbox::default();
    let mut waiting = VecDeque::new();
    let mut received = 0;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(4) {
            0 | 1 if waiting.len() < WAITING_MAX => waiting.extend(raw_send(&theirs, &file, input)),
            2 if waiting.len() < WAITING_MAX => waiting.extend(polite_send(&theirs, &file, input)),
            _ => received += take(&ours, &mut inbox, waiting.pop_front()),
        }
    }
    drop(theirs);
    for sent in waiting {
        received += take(&ours, &mut inbox, Some(sent));
    }
    assert_eq!(receive(&ours, &mut inbox), Err(WireError::Closed));
    received
}

fn packet(input: &mut Input<'_>) -> Sent {
    let len = match input.below(4) {
        0 => MESSAGE_MAX - 2 + input.below(5),
        1 => 0,
        _ => usize::from(input.u8()),
    };
    let descriptors = match input.below(3) {
        0 => 0,
        1 => input.below(4),
        _ => usize::from(input.u8()).min(KERNEL_MAX),
    };
    let fill = input.u8();
    Sent { bytes: vec![fill; len], descriptors }
}

/// As a stranger sends: any length, any number of descriptors, in one part or in two.
fn raw_send(socket: &OwnedFd, file: &OwnedFd, input: &mut Input<'_>) -> Option<Sent> {
    let sent = packet(input);
    let fds = vec![file.as_fd(); sent.descriptors];
    let (first, second) = fds.split_at(if input.flag() { fds.len() / 2 } else { fds.len() });
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253), ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    for part in [first, second] {
        if !part.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(part)));
        }
    }
    let parts = [IoSlice::new(&sent.bytes)];
    rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::DONTWAIT).ok().map(|_| sent)
}

/// As our own ends send: refused before anything leaves where it is too much.
fn polite_send(socket: &OwnedFd, file: &OwnedFd, input: &mut Input<'_>) -> Option<Sent> {
    let sent = packet(input);
    let fds: Vec<BorrowedFd<'_>> = vec![file.as_fd(); sent.descriptors];
    let legal = sent.bytes.len() <= MESSAGE_MAX && fds.len() <= DESCRIPTORS_MAX;
    let result = send(socket, &sent.bytes, &fds);
    assert_eq!(result.is_ok(), legal, "{result:?}");
    legal.then_some(sent)
}

/// Receives what must come next; counts what arrived whole.
fn take(socket: &OwnedFd, inbox: &mut Inbox, sent: Option<Sent>) -> usize {
    let result = receive(socket, inbox);
    let Some(sent) = sent else {
        assert!(result.as_ref().is_err_and(timed_out), "nothing was sent: {result:?}");
        return 0;
    };
    let (bytes, limit) = (sent.bytes.len(), MESSAGE_MAX);
    let (too_long, too_many) = (bytes > limit, sent.descriptors > DESCRIPTORS_MAX);
    match result {
        Ok(()) => {
            assert!(!too_long && !too_many && bytes > 0);
            assert!(inbox.message() == sent.bytes, "another message arrived");
            assert_eq!(inbox.take_descriptors().len(), sent.descriptors);
            1
        }
        Err(error) => {
            let (expected, kept) = match (too_many, too_long) {
                (true, _) => (WireError::Truncated, 0),
                (false, true) => (WireError::MessageTooLong { bytes, limit }, limit),
                (false, false) => (WireError::Closed, 0),
            };
            assert!(too_many || too_long || bytes == 0, "{error}");
            assert_eq!(error, expected);
            // The beginning of a message that is too long says which call is to be refused.
            assert!(*inbox.message() == sent.bytes[..kept], "another message arrived");
            assert!(inbox.take_descriptors().is_empty());
            0
        }
    }
}

/// Conversations of ordinary packets, and of each kind that is refused.
pub fn seeds() -> Vec<Seed> {
    let take: &[u8] = &[3];
    let conversation = |packets: &[&[u8]]| {
        packets.iter().fold(Script::new(), |script, packet| script.bytes(packet).bytes(take))
    };
    // Step, kind of length, length, kind of count, count, fill, in two parts.
    let plain: &[u8] = &[0, 2, 9, 0, 7, 0];
    let with_three: &[u8] = &[0, 2, 9, 1, 3, 7, 0];
    let in_two_parts: &[u8] = &[0, 2, 9, 2, 100, 7, 1];
    vec![
        seed("plain", conversation(&[plain, &[2, 2, 200, 0, 5]])),
        seed("descriptors", conversation(&[with_three, &[2, 2, 4, 1, 2, 5], with_three])),
        seed("two_parts", conversation(&[in_two_parts, plain])),
        seed("longest", conversation(&[&[2, 0, 2, 0, 5], &[0, 0, 2, 0, 5, 0]])),
        seed("too_long", conversation(&[&[0, 0, 4, 1, 2, 5, 0], &[2, 0, 3, 0, 5], plain])),
        seed("too_many_descriptors", conversation(&[&[0, 2, 4, 2, 253, 5, 0], with_three])),
        seed("most_descriptors", conversation(&[&[2, 2, 4, 2, 250, 5], with_three])),
        seed("empty", conversation(&[&[0, 1, 1, 2, 5, 0], plain])),
        seed("several_at_once", Script::new().bytes(plain).bytes(with_three).bytes(plain)),
    ]
}
