//! Calls about spans: where they go, and that no more are wanted.

use std::os::fd::OwnedFd;

use burst_wire::control::Answer;

use super::Session;
use super::memories::only_one;
use crate::ServerError;

/// Writes the spans of all that is done for the client to this memory from now on.
pub(super) fn begin(
    session: &Session,
    length: u64,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let descriptor = only_one(descriptors)?;
    let (budgets, meters) = (&session.budgets, &session.host.metrics.limits);
    session.link.trace().begin(descriptor, length, budgets, meters)?;
    Ok(Answer::Done)
}

/// Writes none any more.
pub(super) fn end(session: &Session) -> Answer {
    session.link.trace().end();
    Answer::Done
}
