//! Models on their way from a client to a device.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::validate::{RequestRules, validate_model};
use burst_hal::{
    Device, ExecutionPreference, HalVersion, Memory, Model, OperandValues, Pool, PreparedModel,
};
use burst_wire::control::{Answer, ModelBody, WirePrepareOptions, decode_model};

use crate::ServerError;
use crate::admission::limits::{Charge, Limit};
use crate::metrics::ModelMeter;
use crate::pools::ClientMemory;
use crate::session::Session;
use crate::session::dispatch::{Done, guarded};

/// A prepared model of a client, and what it asks of a request.
pub(crate) struct PreparedEntry {
    pub(crate) model: Arc<dyn PreparedModel>,
    pub(crate) rules: RequestRules,
    pub(crate) preference: ExecutionPreference,
    pub(crate) meter: ModelMeter,
    _charge: Charge,
}

impl std::fmt::Debug for PreparedEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedEntry")
            .field("preference", &self.preference)
            .finish_non_exhaustive()
    }
}

/// A model's constants, borrowed from memory that nobody can write any more.
struct SealedValues {
    memory: Arc<ClientMemory>,
    range: Range<usize>,
}

impl AsRef<[u8]> for SealedValues {
    fn as_ref(&self) -> &[u8] {
        // Sealed and in range: `receive` checked both, and neither can change.
        self.memory.as_bytes().and_then(|bytes| bytes.get(self.range.clone())).unwrap_or_default()
    }
}

/// The model that lies in the first descriptor, with the others as its pools; found legal.
pub(crate) fn receive(
    session: &Session,
    body: &ModelBody,
    descriptors: Vec<OwnedFd>,
) -> Result<Model, ServerError> {
    let total = body.total_bytes()?;
    let limit = session.service.options.limits.model_bytes;
    session.service.metrics.limits.within(Limit::ModelBytes, total, limit)?;
    let mut descriptors = descriptors.into_iter();
    let missing = ServerError::Descriptors { wanted: body.descriptors(), got: 0 };
    let own = descriptors.next().ok_or(missing)?;
    let memory = Arc::new(ClientMemory::open(own, total, &session.budgets)?);
    let pools = descriptors
        .zip(&body.pool_lengths.0)
        .map(|(fd, length)| -> Result<Pool, ServerError> {
            Ok(Arc::new(ClientMemory::open(fd, *length, &session.budgets)?))
        })
        .collect::<Result<Vec<Pool>, _>>()?;
    let bytes = memory.as_bytes().ok_or(ServerError::ModelNotSealed)?;
    // Both fit: their sum is the length of the mapping.
    let structure = 0..index(body.structure_bytes)?;
    let values = index(body.values_at()?)?..index(total)?;
    let structure = bytes.get(structure).ok_or(ServerError::ModelNotSealed)?;
    let values = OperandValues::new(SealedValues { memory: Arc::clone(&memory), range: values });
    let model = decode_model(structure, values, pools)?;
    validate_model(&model, HalVersion::LATEST)?;
    Ok(model)
}

fn index(bytes: u64) -> Result<usize, ServerError> {
    usize::try_from(bytes).map_err(|_| ServerError::NeverAllowed {
        what: Limit::ModelBytes,
        asked: bytes,
        limit: usize::MAX as u64,
    })
}

/// Prepares a model and gives it a number.
pub(crate) fn prepare(
    session: &Session,
    device: &dyn Device,
    body: &ModelBody,
    options: &WirePrepareOptions,
    descriptors: Vec<OwnedFd>,
) -> Result<Done, ServerError> {
    let charge = session.budgets.models.charge(1)?;
    let options = options.decode()?;
    let model = receive(session, body, descriptors)?;
    let rules = RequestRules::new(&model)?;
    let prepared = guarded(|| device.prepare_model(&model, &options))??;
    drop(model); // the device keeps what it needs
    let preference = options.preference;
    let meter = session.service.metrics.model(session.number(), device.name());
    let entry =
        Arc::new(PreparedEntry { model: prepared, rules, preference, meter, _charge: charge });
    let mut state = session.lock();
    let number = state.number();
    state.models.insert(number, entry);
    Ok(Answer::Prepared { model: number }.into())
}
