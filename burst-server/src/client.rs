//! A client, as whatever works for it knows it: the socket, the questions that are open at it, and
//! how long it counts as present.
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
