//! What each call of a client does.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::validate::UnspecifiedOutputs;
use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, Pool, Request, RequestArgument, RequestPool, TimePoint,
};
use burst_wire::Features;
use burst_wire::control::{
    Answer, Call, DeviceInfo, Executed, PoolSource, Refusal, SynchronousRequest, Text,
};

use crate::pools::{ClientMemory, ServiceMemory};
use crate::session::Session;
use crate::session::models::PreparedEntry;
use crate::{ServerError, burst::start as burst, session::models as model};

/// What a call gave, and the descriptor that goes with it.
pub(crate) struct Done {
    pub(crate) answer: Answer,
    pub(crate) descriptor: Option<OwnedFd>,
}

impl From<Answer> for Done {
    fn from(answer: Answer) -> Self {
        Done { answer, descriptor: None }
    }
}

/// Runs code of a device; a panic in it is a failure of this one call.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, ServerError> {
    // The device sees to its own state: it is told nothing but that the call is over.
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| ServerError::Panicked)
}

/// A refusal in the words of the wire.
pub(crate) fn refusal(error: &ServerError, features: Features) -> Refusal {
    let mut status = error.status();
    let is_hal_1_3 = status.code() > ErrorStatus::InvalidArgument.code();
    if is_hal_1_3 && !features.contains(Features::STATUS_1_3) {
        status = ErrorStatus::GeneralFailure;
    }
    tracing::debug!(%status, %error, "call refused");
    Refusal::new(status, &error.to_string())
}

/// Does what a call asks for. Its descriptors are as many as it needs.
pub(crate) fn perform(
    session: &Arc<Session>,
    call: Call,
    descriptors: Vec<OwnedFd>,
) -> Result<Done, ServerError> {
    let arrived = Instant::now();
    match call {
        Call::ListDevices => Ok(list_devices(session)),
        Call::DeviceInfo { device } => device_info(session, device),
        Call::DeviceStatus { device } => {
            let device = find_device(session, device)?;
            Ok(Answer::DeviceStatus(guarded(|| device.status())?.code()).into())
        }
        Call::SupportedOperations { device, model } => {
            let device = find_device(session, device)?;
            let model = model::receive(session, &model, descriptors)?;
            let supported = guarded(|| device.supported_operations(&model))??;
            Ok(Answer::Supported(supported.into_iter().collect()).into())
        }
        Call::Prepare { device, model, options } => {
            let device = find_device(session, device)?;
            model::prepare(session, &*device, &model, &options, descriptors)
        }
        Call::ReleaseModel { model } => release_model(session, model),
        Call::ShareMemory { memory, length } => {
            let [descriptor] = exactly(descriptors)?;
            share_memory(session, memory, length, descriptor)
        }
        Call::AllocateMemory { memory, length } => allocate_memory(session, memory, length),
        Call::ForgetMemory { memory } => {
            let forgotten = session.lock().memories.remove(&memory);
            drop(forgotten); // outside of the lock: unmapping takes its time
            Ok(Answer::Done.into())
        }
        Call::Execute(request) => execute(session, &request, descriptors, arrived),
        Call::ConfigureBurst { model, request_queue, result_queue, features, wait, depth } => {
            let queues = [request_queue, result_queue];
            let wishes = burst::Wishes { features: Features::from_bits(features), wait, depth };
            burst::configure(session, model, &queues, &wishes, descriptors)
        }
        Call::PushMemory { burst, slot, source } => {
            push_memory(session, burst, slot, source, descriptors)
        }
        Call::FreeMemory { burst, slot } => {
            burst_cache(session, burst)?.remove(slot);
            let keeper = session.lock().bursts.get(&burst).map(burst::BurstHandle::slot_keeper);
            keeper.map_or(Ok(()), |keeper| keeper.free(slot))?;
            Ok(Answer::Done.into())
        }
        Call::CloseBurst { burst } => {
            let unknown = ServerError::Unknown { what: "burst", number: burst };
            let handle = session.lock().bursts.remove(&burst).ok_or(unknown)?;
            session.callbacks.cancel(burst);
            handle.end();
            Ok(Answer::Done.into())
        }
    }
}

fn list_devices(session: &Session) -> Done {
    let names = session.service.devices.iter().map(|device| Text::cut(device.name()));
    Answer::Devices(names.collect()).into()
}

fn find_device(session: &Session, device: u32) -> Result<Arc<dyn Device>, ServerError> {
    let unknown = ServerError::Unknown { what: "device", number: device };
    session.service.devices.get(device as usize).cloned().ok_or(unknown)
}

fn device_info(session: &Session, device: u32) -> Result<Done, ServerError> {
    let device = find_device(session, device)?;
    let info = guarded(|| -> Result<DeviceInfo, ServerError> {
        Ok(DeviceInfo::new(&*device, &device.capabilities()?))
    })??;
    Ok(Answer::Device(info).into())
}

pub(crate) fn find_model(session: &Session, model: u32) -> Result<Arc<PreparedEntry>, ServerError> {
    let unknown = ServerError::Unknown { what: "prepared model", number: model };
    session.lock().models.get(&model).cloned().ok_or(unknown)
}

fn release_model(session: &Session, model: u32) -> Result<Done, ServerError> {
    let unknown = ServerError::Unknown { what: "prepared model", number: model };
    let released = session.lock().models.remove(&model).ok_or(unknown)?;
    drop(released); // outside of the lock: a model may take long to go
    Ok(Answer::Done.into())
}

fn share_memory(
    session: &Session,
    memory: u32,
    length: u64,
    descriptor: OwnedFd,
) -> Result<Done, ServerError> {
    let pool = Arc::new(ClientMemory::open(descriptor, length, &session.budgets)?);
    keep_memory(session, memory, pool)?;
    Ok(Answer::Done.into())
}

fn allocate_memory(session: &Session, memory: u32, length: u64) -> Result<Done, ServerError> {
    let pool = Arc::new(ServiceMemory::create(length, &session.budgets)?);
    let descriptor = pool.duplicate_fd()?;
    keep_memory(session, memory, pool)?;
    Ok(Done { answer: Answer::Done, descriptor: Some(descriptor) })
}

fn keep_memory(session: &Session, memory: u32, pool: Pool) -> Result<(), ServerError> {
    let mut state = session.lock();
    if state.memories.contains_key(&memory) {
        return Err(ServerError::InUse { what: "memory", number: i64::from(memory) });
    }
    state.memories.insert(memory, pool);
    Ok(())
}

fn burst_cache(
    session: &Session,
    burst: u32,
) -> Result<Arc<crate::burst::memory_cache::MemoryCache>, ServerError> {
    let unknown = ServerError::Unknown { what: "burst", number: burst };
    session.lock().bursts.get(&burst).map(burst::BurstHandle::cache).ok_or(unknown)
}

fn push_memory(
    session: &Session,
    burst: u32,
    slot: i32,
    source: PoolSource,
    descriptors: Vec<OwnedFd>,
) -> Result<Done, ServerError> {
    let cache = burst_cache(session, burst)?;
    let mut descriptors = descriptors.into_iter();
    match open_source(session, source, &mut descriptors)? {
        RequestPool::Memory(memory) => cache.insert(slot, memory)?,
        RequestPool::Token(_) => return Err(ServerError::NoBuffers),
    }
    Ok(Answer::Done.into())
}

/// The pool that a message names.
fn open_source(
    session: &Session,
    source: PoolSource,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Result<RequestPool, ServerError> {
    match source {
        PoolSource::Shared { memory } => {
            let unknown = ServerError::Unknown { what: "memory", number: memory };
            let pool = session.lock().memories.get(&memory).cloned().ok_or(unknown)?;
            Ok(RequestPool::Memory(pool))
        }
        PoolSource::Descriptor { length } => {
            let missing = ServerError::Descriptors { wanted: 1, got: 0 };
            let descriptor = descriptors.next().ok_or(missing)?;
            let pool = ClientMemory::open(descriptor, length, &session.budgets)?;
            Ok(RequestPool::Memory(Arc::new(pool)))
        }
        PoolSource::Token { .. } => Err(ServerError::NoBuffers),
    }
}

fn execute(
    session: &Session,
    request: &SynchronousRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Done, ServerError> {
    let entry = find_model(session, request.model)?;
    let mut descriptors = descriptors.into_iter();
    let pools = request.pools.0.iter();
    let call = Request {
        inputs: request.inputs.0.iter().map(RequestArgument::from).collect(),
        outputs: request.outputs.0.iter().map(RequestArgument::from).collect(),
        pools: pools
            .map(|source| open_source(session, *source, &mut descriptors))
            .collect::<Result<_, _>>()?,
    };
    entry.rules.check(&call, UnspecifiedOutputs::Allowed)?;
    let options = ExecutionOptions {
        measure_timing: request.measure_timing,
        deadline: request.deadline.map(|nanos| TimePoint { nanos }),
        loop_timeout: request.loop_timeout.map(Duration::from_nanos),
    };
    if options.deadline.is_some_and(TimePoint::has_passed) {
        return Err(burst_hal::Failure::from(ErrorStatus::MissedDeadlineTransient).into());
    }
    let counts = entry.meter.socket();
    counts.executing();
    let mut result = guarded(|| entry.model.execute_cancellable(&call, &options, &session.cancel))?;
    let outputs = call.outputs.len();
    let in_driver =
        crate::burst::worker::finish(&mut result, outputs, request.measure_timing, arrived);
    // Beside a system call per request the clock costs nothing.
    let nanos = u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counts.count(result.status, Some(nanos));
    Ok(Answer::Executed(Executed::new(&result, in_driver)).into())
}

/// The descriptors as an array of their known number.
pub(crate) fn exactly<const N: usize>(
    descriptors: Vec<OwnedFd>,
) -> Result<[OwnedFd; N], ServerError> {
    let got = descriptors.len();
    descriptors.try_into().map_err(|_| ServerError::Descriptors { wanted: N, got })
}
