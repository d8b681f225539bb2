//! Calls about bursts: starting one, its slots, ending it.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use burst_hal::RequestPool;
use burst_wire::WireError;
use burst_wire::control::{Answer, PoolSource, QueueDescriptor};

use super::Session;
use super::memories::open_source;
use super::replies::Progress;
use super::table::{Table, unknown};
use crate::ServerError;
use crate::admission::Limit;
use crate::buffers::same_device;
use crate::burst::{BUFFER_SLOT_BYTES, BuffersInSlots, BurstHandle, BurstParams, NewBurst};
use crate::panics::lock;

/// Starts a burst on a prepared model. Its new thread opens it, which may take long, and replies to call
/// `id`.
pub(super) fn configure(
    session: &Session,
    id: u64,
    model: u32,
    queues: &[QueueDescriptor; 2],
    params: BurstParams,
    descriptors: Vec<OwnedFd>,
) -> Result<Progress, ServerError> {
    let starter = &session.host.bursts;
    params.check(session.features, &session.host.metrics.limits)?;
    let charge = session.budgets.bursts.charge(1)?;
    let entry = session.table().model(model)?;
    let (queues, of_queues) = starter.attach(queues, descriptors, &session.budgets)?;
    let charge = charge.and(of_queues);
    let number = session.table().next_number();
    let (link, presence) = (Arc::clone(&session.link), Arc::clone(&session.presence));
    let burst = NewBurst { number, params, entry, link, presence, charge };
    let (table, replies) = (Arc::clone(&session.table), Arc::clone(&session.replies));
    let metrics = Arc::clone(&session.host.metrics);
    let started = move |outcome: Result<BurstHandle, ServerError>| {
        let kept = outcome.and_then(|handle| keep(&table, number, handle));
        if kept.is_ok() {
            metrics.burst_started();
        }
        replies.send_later(id, kept.map(|()| Answer::Burst { burst: number }));
    };
    starter.start(burst, queues, Box::new(started))?;
    Ok(Progress::ReplyFollows)
}

/// Keeps a burst that was opened, unless its client has gone meanwhile.
fn keep(table: &Mutex<Table>, number: u32, handle: BurstHandle) -> Result<(), ServerError> {
    let mut table = lock(table);
    if table.is_closed {
        drop(table);
        handle.abandon();
        return Err(WireError::Closed.into());
    }
    table.bursts.insert(number, handle);
    Ok(())
}

/// Puts a memory into a slot of a burst.
pub(super) fn push_memory(
    session: &Session,
    burst: u32,
    slot: i32,
    source: PoolSource,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let (cache, buffers) = {
        let table = session.table();
        let burst = table.burst(burst)?;
        (burst.cache(), burst.buffers())
    };
    if let PoolSource::Token { token } = source {
        let device = takes_buffers(buffers)?;
        let buffer = session.table().buffer(token)?;
        same_device("the buffer is one", &device, buffer.device())?;
        let paid = session.budgets.memory(BUFFER_SLOT_BYTES as u64)?;
        cache.insert_buffer(slot, &buffer, paid)?;
        return Ok(Answer::Done);
    }
    match open_source(session, source, &mut descriptors.into_iter())? {
        RequestPool::Memory(memory) => cache.insert(slot, memory)?,
        RequestPool::Token(_) => return Err(ServerError::MemoryOnly { what: "this slot" }),
    }
    Ok(Answer::Done)
}

/// The device whose buffers a burst takes.
fn takes_buffers(buffers: BuffersInSlots) -> Result<String, ServerError> {
    match buffers {
        BuffersInSlots::Of(device) => Ok(device),
        BuffersInSlots::NotNegotiated => Err(ServerError::NotNegotiated),
        BuffersInSlots::MemoryOnly => {
            Err(ServerError::MemoryOnly { what: "the driver's own burst" })
        }
    }
}

/// Empties a slot of a burst.
pub(super) fn free_memory(session: &Session, burst: u32, slot: i32) -> Result<Answer, ServerError> {
    let (cache, keeper) = {
        let table = session.table();
        let burst = table.burst(burst)?;
        (burst.cache(), burst.slot_keeper())
    };
    cache.remove(slot);
    keeper.free(slot)?;
    Ok(Answer::Done)
}

/// Ends a burst. The client gets its reply when the burst has ended: nothing is executed for it any
/// more, and all that it held is given back. That may take as long as an execution, so the burst's server
/// sends the reply, never the thread that read the call.
pub(super) fn close(session: &Session, id: u64, burst: u32) -> Result<Progress, ServerError> {
    let handle = session.table().bursts.remove(&burst).ok_or(unknown("burst", burst))?;
    let replies = Arc::clone(&session.replies);
    let closed = handle.close(Box::new(move || replies.send_later(id, Ok(Answer::Done))));
    if let Err(handle) = closed {
        // The burst goes on as if it had not been asked to end; the end of the session ends it.
        session.table().bursts.insert(burst, *handle);
        session.host.metrics.limits.refused(Limit::Threads);
        return Err(ServerError::NoThread);
    }
    session.link.cancel_questions_of(burst);
    Ok(Progress::ReplyFollows)
}
