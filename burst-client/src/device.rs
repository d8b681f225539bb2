//! A device of the service, as a [`burst_hal::Device`].

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use burst_hal::{
    Buffer, BufferRequest, CacheFiles, Caller, Capabilities, Device, DeviceStatus, DeviceType,
    Extension, Failure, Model, PrepareOptions, PreparedModel,
};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{Answer, Call, DeviceInfo, ModelBody, encode_model};
use fmq::Deadline;

use crate::burst::longest_packet;
use crate::connection::Link;
use crate::model_handle::ModelHandle;
use crate::{ClientError, RemoteBuffer, RemotePreparedModel, ShmMemory, Stream, StreamOptions};

/// A device in another process.
#[derive(Debug, Clone)]
pub struct RemoteDevice {
    link: Arc<Link>,
    number: u32,
    info: Arc<DeviceInfo>,
}

/// A model as it lies in memory for the service, with the descriptors that go with it.
struct Parcel {
    memory: Memory,
    body: ModelBody,
    /// Copies of pools that have no descriptor of their own.
    copies: Vec<Option<ShmMemory>>,
}

impl RemoteDevice {
    pub(crate) fn query(
        link: &Arc<Link>,
        number: u32,
        deadline: Deadline,
    ) -> Result<Self, ClientError> {
        match link.quick_call_until(Call::DeviceInfo { device: number }, deadline)? {
            (Answer::Device(info), _) => {
                Ok(RemoteDevice { link: Arc::clone(link), number, info: Arc::new(info) })
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// Whether the service is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_usable()
    }

    /// For each operation of the main graph, whether the device runs it.
    ///
    /// # Errors
    /// The service refuses the model, or is gone.
    pub fn query_operations(&self, model: &Model) -> Result<Vec<bool>, ClientError> {
        let parcel = Parcel::pack(model)?;
        let call = Call::SupportedOperations { device: self.number, model: parcel.body.clone() };
        self.link.give_back_dropped(Deadline::never())?;
        match self.link.call(call, &parcel.descriptors(model)?, Deadline::never())? {
            (Answer::Supported(supported), _)
                if supported.0.len() == model.main.operations.len() =>
            {
                Ok(supported.0)
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// Makes a model ready to execute.
    ///
    /// # Errors
    /// The service refuses the model, or is gone.
    pub fn prepare(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        let parcel = Parcel::pack(model)?;
        let call = Call::Prepare {
            device: self.number,
            model: parcel.body.clone(),
            options: options.into(),
        };
        let deadline = options.deadline.map_or(Deadline::never(), |at| Deadline::at_ns(at.nanos));
        self.link.give_back_dropped(deadline)?;
        match self.link.call(call, &parcel.descriptors(model)?, deadline)? {
            (Answer::Prepared { model: number }, _) => {
                let longest = longest_packet(model);
                let handle = ModelHandle::new(&self.link, number, longest);
                Ok(Arc::new(RemotePreparedModel::new(handle)))
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// Makes a buffer in the driver's own memory, for these arguments of models that were prepared over the
    /// same connection. Requests name it by its token.
    ///
    /// # Errors
    /// [`ClientError::OtherConnection`] for any other model; the service refuses the buffer, or is gone.
    pub fn allocate_buffer(&self, request: &BufferRequest) -> Result<RemoteBuffer, ClientError> {
        RemoteBuffer::allocate(&self.link, self.number, request)
    }

    /// Prepares a model and sets everything up to run it often: memory for its inputs and
    /// outputs, and a burst.
    ///
    /// # Errors
    /// As [`RemoteDevice::prepare`]; [`ClientError::Layout`] for a model whose inputs or
    /// outputs have no fixed size.
    pub fn stream(&self, model: &Model, options: &StreamOptions) -> Result<Stream, ClientError> {
        Stream::new(&self.prepare(model, &options.prepare)?, model, options)
    }
}

impl Parcel {
    /// Puts a model's structure and constants into memory that is sealed against writing, so
    /// that the service can use the constants where they lie.
    fn pack(model: &Model) -> Result<Self, ClientError> {
        let (structure, body) = encode_model(model)?;
        let total = body.total_bytes()?;
        let too_long = ClientError::PoolTooLong { bytes: total };
        let length = usize::try_from(total).map_err(|_| too_long.clone())?;
        let values_at = usize::try_from(body.values_at()?).map_err(|_| too_long)?;
        let mut memory = Memory::create("burst-model", length)?;
        {
            // The kernel grants the seal only when no writable mapping is left.
            let mapping = Mapping::map(&memory)?;
            let region = mapping.region(0, length)?;
            region.copy_in(0, &structure)?;
            region.copy_in(values_at, &model.operand_values)?;
        }
        memory.seal_write()?;
        let copies = model.pools.iter().map(copy_without_descriptor).collect::<Result<_, _>>()?;
        Ok(Parcel { memory, body, copies })
    }

    fn descriptors<'a>(&'a self, model: &'a Model) -> Result<Vec<BorrowedFd<'a>>, ClientError> {
        let mut descriptors = vec![self.memory.as_fd()];
        for (pool, copy) in model.pools.iter().zip(&self.copies) {
            let own = copy.as_ref().and_then(burst_hal::Memory::fd);
            descriptors.push(own.or_else(|| pool.fd()).ok_or(ClientError::UnexpectedAnswer)?);
        }
        Ok(descriptors)
    }
}

/// A shared copy of a pool that only this process can reach.
fn copy_without_descriptor(pool: &burst_hal::Pool) -> Result<Option<ShmMemory>, ClientError> {
    if pool.fd().is_some() {
        return Ok(None);
    }
    Ok(Some(ShmMemory::copy_of(pool)?))
}

impl Device for RemoteDevice {
    fn name(&self) -> &str {
        self.info.name.as_str()
    }

    fn version_string(&self) -> &str {
        self.info.version.as_str()
    }

    fn device_type(&self) -> DeviceType {
        self.info.device_type()
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(self.info.capabilities())
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.info.extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.info.cache_files()
    }

    fn status(&self) -> DeviceStatus {
        match self.link.quick_call(Call::DeviceStatus { device: self.number }, &[]) {
            Ok((Answer::DeviceStatus(code), _)) => {
                DeviceStatus::from_code(code).unwrap_or(DeviceStatus::Unknown)
            }
            Ok(_) => DeviceStatus::Unknown,
            Err(_) => DeviceStatus::Offline,
        }
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(self.query_operations(model)?)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(self.prepare(model, options)?)
    }

    /// The client's user pays for it in the service, whoever the caller is here.
    fn allocate(&self, request: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
        Ok(Arc::new(self.allocate_buffer(request)?))
    }
}
