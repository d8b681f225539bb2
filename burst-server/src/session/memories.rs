//! Calls about a client's memories, and the memories that its other calls name.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::{Pool, RequestPool};
use burst_wire::control::{Answer, PoolSource};

use super::Session;
use super::replies::CallOutput;
use super::table::unknown;
use crate::ServerError;
use crate::pools::ServiceMemory;

pub(super) fn share(
    session: &Session,
    memory: u32,
    length: u64,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let descriptor = only_one(descriptors)?;
    keep(session, memory, Arc::new(session.link.open_memory(descriptor, length)?))?;
    Ok(Answer::Done)
}

pub(super) fn allocate(
    session: &Session,
    memory: u32,
    length: u64,
) -> Result<CallOutput, ServerError> {
    let pool = Arc::new(ServiceMemory::create(length, &session.budgets)?);
    let descriptor = pool.duplicate_fd()?;
    keep(session, memory, pool)?;
    Ok(CallOutput { answer: Answer::Done, descriptor: Some(descriptor) })
}

fn keep(session: &Session, memory: u32, pool: Pool) -> Result<(), ServerError> {
    let mut table = session.table();
    if table.memories.contains_key(&memory) {
        return Err(ServerError::InUse { what: "memory", number: i64::from(memory) });
    }
    table.memories.insert(memory, pool);
    Ok(())
}

pub(super) fn forget(session: &Session, memory: u32) -> Answer {
    let forgotten = session.table().memories.remove(&memory);
    drop(forgotten); // the lock is let go of by now
    Answer::Done
}

/// The memory that a call names as a pool.
pub(super) fn open_source(
    session: &Session,
    source: PoolSource,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Result<RequestPool, ServerError> {
    match source {
        PoolSource::Shared { memory } => Ok(RequestPool::Memory(session.table().memory(memory)?)),
        PoolSource::Descriptor { length } => {
            let missing = ServerError::Descriptors { wanted: 1, got: 0 };
            let descriptor = descriptors.next().ok_or(missing)?;
            Ok(RequestPool::Memory(Arc::new(session.link.open_memory(descriptor, length)?)))
        }
        PoolSource::Token { token } => {
            let buffer = session.table().buffer(token)?;
            Ok(RequestPool::Token(buffer.token()))
        }
        PoolSource::Unknown { kind } => Err(unknown("kind of pool source", kind)),
    }
}

/// The descriptor of a call that comes with one.
pub(super) fn only_one(descriptors: Vec<OwnedFd>) -> Result<OwnedFd, ServerError> {
    let got = descriptors.len();
    let [descriptor] = <[OwnedFd; 1]>::try_from(descriptors)
        .map_err(|_| ServerError::Descriptors { wanted: 1, got })?;
    Ok(descriptor)
}
