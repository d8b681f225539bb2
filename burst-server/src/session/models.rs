//! Calls about models: which operations a device supports, preparing, releasing.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::log_tags::DRIVER;
use burst_hal::trace::{Marks, SpanKind, when_on};
use burst_hal::validate::{RequestRules, validate_model};
use burst_hal::{
    Caller, Device, HalVersion, Memory, Model, OperandValues, Pool, PrepareOptions, PrepareResult,
    Priority,
};
use burst_wire::control::{Answer, ModelBody, WirePrepareOptions, decode_model};

use super::prepare_by::PrepareBy;
use super::table::unknown;
use super::{Session, devices};
use crate::ServerError;
use crate::admission::{Charge, Limit, ModelAccount};
use crate::metrics::ModelMeter;
use crate::panics::catch_panic;
use crate::pools::ClientMemory;
use crate::prepared::PreparedEntry;
use crate::scheduler::{Run, Work};

/// A model's constants, borrowed from memory that is sealed against writing.
struct SealedValues {
    memory: Arc<ClientMemory>,
    range: Range<usize>,
}

impl AsRef<[u8]> for SealedValues {
    fn as_ref(&self) -> &[u8] {
        // `receive` has checked the seal and the range, and neither can change.
        self.memory.as_bytes().and_then(|bytes| bytes.get(self.range.clone())).unwrap_or_default()
    }
}

/// Bytes that the service keeps of a prepared model for each byte of its structure: the rules for
/// requests, for each of which the structure has an operand and its number.
const KEPT: u64 = 4;

/// A model of a client, and what the client pays for it.
struct Received {
    model: Model,
    decoded: Charge,
    kept: Charge,
    /// How many bytes that is.
    kept_bytes: u64,
}

/// Reads the model out of the first descriptor, with the others as its pools, and validates it.
///
/// `run` computes from the moment on at which all descriptors are open: until then the thread may wait
/// for whoever serves the client's files.
fn receive(
    session: &Session,
    run: &Run,
    body: &ModelBody,
    descriptors: Vec<OwnedFd>,
    by: PrepareBy,
) -> Result<Received, ServerError> {
    let total = body.total_bytes()?;
    let limit = session.host.limits.model_bytes;
    session.host.metrics.limits.within(Limit::ModelBytes, total, limit)?;
    // Before anything is decoded, and until the device has made what it needs of the model.
    let decoded = session.budgets.memory(body.decoded_bytes())?;
    let kept_bytes = body.structure_bytes.saturating_mul(KEPT);
    let kept = session.budgets.memory(kept_bytes)?;
    let mut descriptors = descriptors.into_iter();
    let missing = ServerError::Descriptors { wanted: body.descriptors(), got: 0 };
    let own = descriptors.next().ok_or(missing)?;
    let memory = Arc::new(session.link.open_memory(own, total)?);
    let pools = descriptors
        .zip(&body.pool_lengths.0)
        .map(|(fd, length)| -> Result<Pool, ServerError> {
            Ok(Arc::new(session.link.open_memory(fd, *length)?))
        })
        .collect::<Result<Vec<Pool>, _>>()?;
    by.begin(run)?;
    let bytes = memory.as_bytes().ok_or(ServerError::ModelNotSealed)?;
    // Both ranges lie within the mapping: their lengths add up to its own.
    let structure = 0..index(body.structure_bytes)?;
    let values = index(body.values_at()?)?..index(total)?;
    let structure = bytes.get(structure).ok_or(ServerError::ModelNotSealed)?;
    let values = OperandValues::new(SealedValues { memory: Arc::clone(&memory), range: values });
    let model = decode_model(structure, values, pools)?;
    validate_model(&model, HalVersion::LATEST)?;
    Ok(Received { model, decoded, kept, kept_bytes })
}

fn index(bytes: u64) -> Result<usize, ServerError> {
    usize::try_from(bytes).map_err(|_| ServerError::NeverAllowed {
        what: Limit::ModelBytes,
        asked: bytes,
        limit: usize::MAX as u64,
    })
}

/// For whom a device works on a model: the client's user pays for it, it gives up when the client is
/// gone, and takes turns.
pub(super) fn caller(session: &Session, run: &Arc<Run>) -> Caller {
    session.link.caller().with_turn(Arc::clone(run) as _)
}

/// Which operations of a model a device supports.
pub(super) fn supported_operations(
    session: &Session,
    device: u32,
    body: &ModelBody,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let device = devices::find(session, device)?;
    let tracer = when_on(&session.link.tracer());
    let mut marks = Marks::begin(tracer.as_deref());
    let run = session.run(Work::Survey, Priority::Medium);
    let _entered = run.enter();
    let Received { model, .. } = &receive(session, &run, body, descriptors, PrepareBy::default())?;
    marks.mark(SpanKind::ReceiveModel);
    let caller = caller(session, &run);
    let supported = catch_panic(|| device.supported_operations_for(model, &caller))??;
    marks.skip();
    marks.whole(SpanKind::Survey, 0);
    log("supported_operations", session, &*device, model);
    Ok(Answer::Supported(supported.into_iter().collect()))
}

/// A call that reaches a device.
fn log(call: &str, session: &Session, device: &dyn Device, model: &Model) {
    let (client, device) = (session.presence.client(), device.name());
    let operations = model.main.operations.len();
    tracing::debug!(target: DRIVER, client, device, operations, "{call}");
}

/// Prepares a model and gives it a number.
pub(super) fn prepare(
    session: &Session,
    device: u32,
    body: &ModelBody,
    options: &WirePrepareOptions,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    prepare_with(session, device, (body, options), descriptors, |device, model, options, caller| {
        device.prepare_model_for(model, options, caller)
    })
}

/// Prepares a model in this way and gives it a number.
pub(super) fn prepare_with(
    session: &Session,
    device: u32,
    (body, options): (&ModelBody, &WirePrepareOptions),
    descriptors: Vec<OwnedFd>,
    prepare: impl FnOnce(&dyn Device, &Model, &PrepareOptions, &Caller) -> PrepareResult,
) -> Result<Answer, ServerError> {
    let device = devices::find(session, device)?;
    let charge = session.budgets.models.charge(1)?;
    let options = options.decode()?;
    let by = PrepareBy::now(options.deadline);
    let tracer = when_on(&session.link.tracer());
    let mut marks = Marks::begin(tracer.as_deref());
    let run = session.run(Work::Preparation, options.priority);
    let entered = run.enter();
    let Received { model, decoded, kept, kept_bytes } =
        receive(session, &run, body, descriptors, by)?;
    marks.mark(SpanKind::ReceiveModel);
    let charge = charge.and(kept);
    let rules = RequestRules::new(&model)?;
    by.check()?;
    let account = ModelAccount::new(session.presence.user());
    account.also(kept_bytes);
    let caller = caller(session, &run).with_account(Arc::clone(&account) as _);
    log("prepare_model", session, &*device, &model);
    let prepared = catch_panic(|| prepare(&*device, &model, &options, &caller))??;
    drop(entered);
    drop((model, decoded)); // the device has kept what it needs
    let meter = meter(session, &*device, account);
    let entry = PreparedEntry::new(prepared, &options, rules, meter, charge);
    marks.skip();
    marks.whole(SpanKind::PrepareModel, 0);
    Ok(Answer::Prepared { model: keep(session, entry) })
}

/// Counts what is done with a model of this client, whose memory this account has.
pub(super) fn meter(
    session: &Session,
    device: &dyn Device,
    account: Arc<ModelAccount>,
) -> ModelMeter {
    let (client, uid) = (session.presence.client(), session.presence.peer().uid);
    session.host.metrics.model(client, uid, device.name(), account)
}

/// Gives a prepared model a number.
pub(super) fn keep(session: &Session, entry: PreparedEntry) -> u32 {
    let mut table = session.table();
    let number = table.next_number();
    table.models.insert(number, Arc::new(entry));
    number
}

/// Takes the number of a prepared model back; its bursts live on.
pub(super) fn release(session: &Session, model: u32) -> Result<Answer, ServerError> {
    let released = session.table().models.remove(&model).ok_or(unknown("prepared model", model))?;
    drop(released); // the lock is let go of by now
    Ok(Answer::Done)
}
