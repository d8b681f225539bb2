//! Calls about buffers of drivers: making one, copying its value, letting go of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::validate::{RequestRules, validate_buffer};
use burst_hal::{BufferRequest, BufferRole, Failure, Pool, Priority, RequestPool};
use burst_wire::control::{Answer, PoolSource, WireBufferRequest};

use super::memories::open_source;
use super::table::unknown;
use super::{Session, devices};
use crate::ServerError;
use crate::buffers::{BufferEntry, same_device};
use crate::panics::catch_panic;
use crate::prepared::PreparedEntry;
use crate::scheduler::Work;

/// Makes a buffer and gives it a token of this client.
pub(super) fn allocate(
    session: &Session,
    device: u32,
    request: &WireBufferRequest,
) -> Result<Answer, ServerError> {
    let device = devices::find(session, device)?;
    let charge = session.budgets.buffers.charge(1)?;
    let models = request.models.0.iter();
    let models: Vec<Arc<PreparedEntry>> =
        models.map(|model| session.table().model(*model)).collect::<Result<_, _>>()?;
    for model in &models {
        same_device("a role is in a model", device.name(), model.device())?;
    }
    let roles = |list: &[_]| list.iter().map(BufferRole::from).collect();
    let request = BufferRequest {
        dimensions: request.dimensions.0.as_slice().into(),
        models: models.iter().map(|model| Arc::clone(&model.model)).collect(),
        inputs: roles(&request.inputs.0),
        outputs: roles(&request.outputs.0),
    };
    // Here, so that no device has to, and every device refuses the same.
    let rules: Vec<&RequestRules> = models.iter().map(|model| model.rules()).collect();
    validate_buffer(&request.dimensions, &rules, &request.inputs, &request.outputs)?;
    let caller = session.link.caller();
    let buffer = catch_panic(|| device.allocate(&request, &caller))??;
    if buffer.token() == 0 {
        return Err(Failure::general("the device made a buffer with token 0").into());
    }
    let entry = Arc::new(BufferEntry::new(buffer, device.name(), charge));
    Ok(Answer::Buffer { token: session.table().add_buffer(entry) })
}

/// Copies the value of a buffer to memory of the client.
pub(super) fn copy_from(
    session: &Session,
    token: u32,
    to: PoolSource,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    copy(session, token, to, descriptors, |buffer, pool| buffer.buffer.copy_to(pool))
}

/// Gives a buffer a value from memory of the client.
pub(super) fn copy_to(
    session: &Session,
    token: u32,
    from: PoolSource,
    dimensions: &[u32],
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    copy(session, token, from, descriptors, |buffer, pool| {
        buffer.buffer.copy_from(pool, dimensions)
    })
}

/// Copies under a run token, which the thread gives back for as long as a file of the client keeps it
/// waiting.
fn copy(
    session: &Session,
    token: u32,
    source: PoolSource,
    descriptors: Vec<OwnedFd>,
    copy: impl FnOnce(&BufferEntry, &Pool) -> Result<(), Failure>,
) -> Result<Answer, ServerError> {
    let buffer = session.table().buffer(token)?;
    if let PoolSource::Token { .. } = source {
        return Err(ServerError::MemoryOnly { what: "a copy of a buffer" });
    }
    let RequestPool::Memory(pool) = open_source(session, source, &mut descriptors.into_iter())?
    else {
        return Err(ServerError::MemoryOnly { what: "a copy of a buffer" });
    };
    let run = session.run(Work::Copy, Priority::Medium);
    let _entered = run.enter();
    run.begin(None)?;
    catch_panic(|| copy(&buffer, &pool))??;
    Ok(Answer::Done)
}

/// Takes the token of a buffer back; executions under way keep the buffer.
pub(super) fn release(session: &Session, token: u32) -> Result<Answer, ServerError> {
    let released = session.table().buffers.remove(&token).ok_or(unknown("buffer", token))?;
    drop(released); // the lock is let go of by now
    Ok(Answer::Done)
}

/// The buffers that these sources name, for a request to one of this model's executions: whoever holds
/// them until the execution has ended holds their tokens at the device, too.
///
/// # Errors
/// A token that this client does not have, or whose buffer belongs to another device than the model.
pub(super) fn kept_for(
    session: &Session,
    model: &PreparedEntry,
    sources: &[PoolSource],
) -> Result<Vec<Arc<BufferEntry>>, ServerError> {
    let tokens = sources.iter().filter_map(|source| match source {
        PoolSource::Token { token } => Some(*token),
        _ => None,
    });
    tokens
        .map(|token| {
            let buffer = session.table().buffer(token)?;
            buffer.check_device(model)?;
            Ok(buffer)
        })
        .collect()
}
