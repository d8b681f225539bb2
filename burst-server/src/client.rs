//! A client, as the threads that work for it see it: the socket, the questions that it has not
//! answered yet, and how long it counts as present.
//!
//! A burst knows its client through a [`ClientLink`] alone, and no session.

mod link;
mod presence;
mod questions;
mod socket;

pub(crate) use link::ClientLink;
pub(crate) use presence::Presence;
pub(crate) use questions::Memories;
pub(crate) use socket::ClientSocket;
