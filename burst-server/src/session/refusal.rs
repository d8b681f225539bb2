//! The answer to a connection that is not let in.

use std::os::fd::AsFd;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::greeting::refusing;
use super::host::Host;
use crate::admission::NotAccepted;

/// Messages of a connection that is refused which are taken out of its socket unread.
const UNREAD_MAX: usize = 64;

/// Tells a connection that is not let in why, without waiting for anything: neither for its greeting,
/// nor for room in the socket. The caller closes it then.
pub(crate) fn refuse(host: &Host, socket: impl AsFd, refusal: &NotAccepted) {
    let told = refusing(host, refusal)
        .encode()
        .map(|bytes| send(&socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL));
    tracing::debug!(?refusal, ?told, "connection refused");
    // Messages that nobody read would have the peer find an error before it finds the answer. After
    // the shutdown none can follow, and a socket holds only so many.
    let _ = shutdown(&socket, Shutdown::Read);
    for _ in 0..UNREAD_MAX {
        match recv(&socket, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, length)) if length > 0 => {}
            _ => break,
        }
    }
}
