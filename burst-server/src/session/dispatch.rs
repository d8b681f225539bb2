//! From a call to the function that does it.

use std::os::fd::OwnedFd;
use std::time::Instant;

use burst_hal::{CACHE_FILES_MAX, CacheFiles};
use burst_wire::Features;
use burst_wire::control::{Call, FENCES_MAX};

use super::replies::Progress;
use super::{
    Session, buffers, bursts, compilations, devices, executions, launches, memories, models, traces,
};
use crate::ServerError;
use crate::admission::{Limit, LimitMeters};
use crate::burst::BurstParams;

/// Looks at the numbers of descriptors that a call states by itself: one that is over its limit is refused by that,
/// and not for the descriptors that nobody could send with it.
///
/// # Errors
/// [`ServerError::NeverAllowed`], [`ServerError::CacheFiles`].
pub(super) fn check_counts(call: &Call, meters: &LimitMeters) -> Result<(), ServerError> {
    match call {
        Call::ExecuteFenced(fenced) => {
            Ok(meters.within(Limit::Fences, fenced.fences.into(), FENCES_MAX.into())?)
        }
        Call::PrepareCaching { cache, .. } | Call::PrepareFromCache { cache, .. } => {
            let CacheFiles { model, data } = cache.kinds();
            match model.max(data) {
                files if files > CACHE_FILES_MAX => Err(ServerError::CacheFiles { files }),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Does what call `id` asks for. The caller has checked that it came with as many descriptors as it
/// needs.
pub(super) fn perform(
    session: &Session,
    id: u64,
    call: Call,
    descriptors: Vec<OwnedFd>,
) -> Result<Progress, ServerError> {
    let arrived = Instant::now();
    let answer = match call {
        Call::ListDevices => devices::list(session),
        Call::DeviceInfo { device } => devices::info(session, device)?,
        Call::DeviceStatus { device } => devices::status(session, device)?,
        Call::SupportedOperations { device, model } => {
            models::supported_operations(session, device, &model, descriptors)?
        }
        Call::Prepare { device, model, options } => {
            models::prepare(session, device, &model, &options, descriptors)?
        }
        Call::PrepareCaching { device, model, options, cache } => {
            compilations::prepare(session, device, (&model, &options), &cache, descriptors)?
        }
        Call::PrepareFromCache { device, cache, deadline } => {
            compilations::restore(session, device, &cache, deadline, descriptors)?
        }
        Call::ReleaseModel { model } => models::release(session, model)?,
        Call::ShareMemory { memory, length } => {
            memories::share(session, memory, length, descriptors)?
        }
        Call::AllocateMemory { memory, length } => {
            return Ok(memories::allocate(session, memory, length)?.into());
        }
        Call::ForgetMemory { memory } => memories::forget(session, memory),
        Call::Execute(request) => executions::execute(session, &request, descriptors, arrived)?,
        Call::ConfigureBurst { model, request_queue, result_queue, features, wait, depth } => {
            let queues = [request_queue, result_queue];
            let params = BurstParams { features: Features::from_bits(features), wait, depth };
            return bursts::configure(session, id, model, &queues, params, descriptors);
        }
        Call::PushMemory { burst, slot, source } => {
            bursts::push_memory(session, burst, slot, source, descriptors)?
        }
        Call::FreeMemory { burst, slot } => bursts::free_memory(session, burst, slot)?,
        Call::CloseBurst { burst } => return bursts::close(session, id, burst),
        Call::AllocateBuffer { device, request } => buffers::allocate(session, device, &request)?,
        Call::CopyFromBuffer { token, to } => buffers::copy_from(session, token, to, descriptors)?,
        Call::CopyToBuffer { token, from, dimensions } => {
            buffers::copy_to(session, token, from, &dimensions.0, descriptors)?
        }
        Call::ReleaseBuffer { token } => buffers::release(session, token)?,
        Call::ExecuteAsynchronously { execution, request } => {
            return launches::asynchronously(
                session,
                id,
                execution,
                &request,
                descriptors,
                arrived,
            );
        }
        Call::ExecuteFenced(request) => {
            return launches::fenced(session, id, &request, descriptors, arrived);
        }
        Call::CancelExecution { execution } => launches::cancel(session, execution),
        Call::ExecutionInfo { execution } => launches::info(session, execution)?,
        Call::ReleaseExecution { execution } => launches::release(session, execution)?,
        Call::BeginTrace { length } => traces::begin(session, length, descriptors)?,
        Call::EndTrace => traces::end(session),
        Call::Unknown { number } => return Err(ServerError::UnknownCall { number }),
    };
    Ok(answer.into())
}
