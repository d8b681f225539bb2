//! A device of the service, as a [`burst_hal::Device`].

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use burst_hal::log_tags::MANAGER;
use burst_hal::trace::{Marks, SpanKind};
use burst_hal::validate::{RequestRules, validate_model};
use burst_hal::{
    Buffer, BufferRequest, CACHE_FILES_MAX, CacheFiles, Caller, Capabilities, CompilationCache,
    Device, DeviceStatus, DeviceType, Extension, Failure, HalVersion, Model, PrepareOptions,
    PreparedModel, TimePoint,
};
use burst_shm::Memory;
use burst_wire::control::{Answer, CachePlace, Call, DeviceInfo, ModelBody, encode_model};
use burst_wire::{WireError, longest_packet};
use fmq::Deadline;

use crate::connection::Link;
use crate::model_handle::ModelHandle;
use crate::waiting::{Patience, answer_by};
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
        match link.quick_call(Call::DeviceInfo { device: number }, &[], deadline)? {
            (Answer::Device(info), _) => {
                let (name, version) = (info.name.as_str(), info.version.as_str());
                tracing::debug!(target: MANAGER, name, version, "a device of the service");
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

    /// Whether the service answers until then, asked for something that needs no work. One that is merely busy
    /// does.
    #[must_use]
    pub fn answers(&self, deadline: Deadline) -> bool {
        let asked = self.ask_status(deadline);
        self.is_alive()
            && !matches!(asked, Err(ClientError::Timeout | ClientError::PeerDied { .. }))
    }

    fn ask_status(&self, deadline: Deadline) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.link.quick_call(Call::DeviceStatus { device: self.number }, &[], deadline)
    }

    /// Hangs up on a service that does not answer any more. From then on it counts as dead, for everything that
    /// was made over this connection; a service that goes on after all gives up what it did for it.
    pub fn hang_up(&self) {
        self.link.hang_up();
    }

    /// For each operation of the main graph, whether the device runs it.
    ///
    /// # Errors
    /// The service refuses the model, or is gone.
    pub fn query_operations(&self, model: &Model) -> Result<Vec<bool>, ClientError> {
        self.query_operations_until(model, Deadline::never())
    }

    /// The same, with no answer later than this.
    ///
    /// # Errors
    /// As [`RemoteDevice::query_operations`]; [`ClientError::Timeout`].
    pub fn query_operations_until(
        &self,
        model: &Model,
        deadline: Deadline,
    ) -> Result<Vec<bool>, ClientError> {
        self.survey(model, deadline.into())
    }

    fn survey(&self, model: &Model, patience: Patience<'_>) -> Result<Vec<bool>, ClientError> {
        patience.check()?;
        let parcel = Parcel::pack(model)?;
        let call = Call::SupportedOperations { device: self.number, model: parcel.body.clone() };
        self.link.give_back_dropped(patience)?;
        match self.link.call(call, &parcel.descriptors(model)?, patience)? {
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
    /// The service refuses the model, for its deadline too, or is gone; [`ClientError::Timeout`] where it says
    /// nothing for [a grace](crate::ANSWER_GRACE) beyond the deadline.
    pub fn prepare(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.prepare_with(model, options, answer_by(options.deadline).into())
    }

    /// The same, for somebody who waits for so long.
    pub(crate) fn prepare_with(
        &self,
        model: &Model,
        options: &PrepareOptions,
        patience: Patience<'_>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.prepare_in(model, options, None, patience)
    }

    /// As [`RemoteDevice::prepare`], and the device keeps the compilation in these files where it can use
    /// them. Only their descriptors go to the service.
    ///
    /// # Errors
    /// As [`RemoteDevice::prepare`].
    pub fn prepare_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.prepare_caching_with(model, options, cache, answer_by(options.deadline).into())
    }

    /// The same, for somebody who waits for so long.
    pub(crate) fn prepare_caching_with(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        patience: Patience<'_>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        // A number of files that no message has room for is one that no device needs.
        let files = Some(cache).filter(|cache| fits(cache.files()));
        match self.prepare_in(model, options, files, patience) {
            // A service of an earlier version keeps none.
            Err(ClientError::UnknownCall { .. }) => self.prepare_with(model, options, patience),
            prepared => prepared,
        }
    }

    /// Makes the model ready that was kept in these files. What a request for it has to be only the
    /// service knows.
    ///
    /// # Errors
    /// The device does not take the files, or the service is gone.
    pub fn prepare_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.prepare_from_cache_with(cache, deadline, answer_by(deadline).into())
    }

    /// The same, for somebody who waits for so long.
    pub(crate) fn prepare_from_cache_with(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        patience: Patience<'_>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        patience.check()?;
        let files = cache.files();
        if !fits(files) {
            return Err(ClientError::CacheFiles { files, limit: CACHE_FILES_MAX });
        }
        let call = Call::PrepareFromCache {
            device: self.number,
            cache: CachePlace::new(cache.token, files),
            deadline: deadline.map(|at| at.nanos),
        };
        self.link.give_back_dropped(patience)?;
        let descriptors: Vec<BorrowedFd<'_>> = files_of(cache).collect();
        match self.link.call(call, &descriptors, patience)? {
            (Answer::Restored { model, longest_packet, prepared, .. }, _) => {
                let longest = usize::try_from(longest_packet).unwrap_or(usize::MAX);
                let options = prepared.options();
                let handle = ModelHandle::new(&self.link, model, longest);
                let handle = handle.preferring(options.preference);
                Ok(Arc::new(RemotePreparedModel::new(handle, options, &self.info)))
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    fn prepare_in(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: Option<&CompilationCache>,
        patience: Patience<'_>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        patience.check()?;
        let tracer = self.link.tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let parcel = Parcel::pack(model)?;
        let (device, body) = (self.number, parcel.body.clone());
        let wire_options = options.into();
        let call = match cache {
            None => Call::Prepare { device, model: body, options: wire_options },
            Some(cache) => {
                let cache = CachePlace::new(cache.token, cache.files());
                Call::PrepareCaching { device, model: body, options: wire_options, cache }
            }
        };
        self.link.give_back_dropped(patience)?;
        let mut descriptors = parcel.descriptors(model)?;
        descriptors.extend(cache.into_iter().flat_map(files_of));
        match self.link.call(call, &descriptors, patience)? {
            (Answer::Prepared { model: number }, _) => {
                // The service has found the model legal: its rules are there.
                let rules = RequestRules::new(model).map_err(|_| ClientError::UnexpectedAnswer)?;
                let handle = ModelHandle::new(&self.link, number, longest_packet(&rules));
                let handle = handle.preferring(options.preference);
                marks.mark(SpanKind::Prepare);
                Ok(Arc::new(RemotePreparedModel::new(handle, *options, &self.info)))
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
        self.allocate_buffer_until(request, Deadline::never())
    }

    /// The same, with no answer later than this.
    ///
    /// # Errors
    /// As [`RemoteDevice::allocate_buffer`]; [`ClientError::Timeout`].
    pub fn allocate_buffer_until(
        &self,
        request: &BufferRequest,
        deadline: Deadline,
    ) -> Result<RemoteBuffer, ClientError> {
        RemoteBuffer::allocate(&self.link, self.number, request, deadline)
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
        let (structure, body) = encode_model(model).map_err(|cause| not_sent(model, cause))?;
        let total = body.total_bytes()?;
        let too_long = ClientError::PoolTooLong { bytes: total };
        let length = usize::try_from(total).map_err(|_| too_long)?;
        let values_at = body.values_at()?;
        let mut memory = Memory::create("burst-model", length)?;
        memory.write(0, &structure)?;
        memory.write(values_at, &model.operand_values)?;
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

/// Why a model cannot be sent: a device in this process would not take it either, or it is larger than messages are.
fn not_sent(model: &Model, cause: WireError) -> ClientError {
    match validate_model(model, HalVersion::LATEST) {
        Err(illegal) => ClientError::IllegalModel(illegal),
        Ok(()) => ClientError::ModelTooLarge(cause),
    }
}

/// The descriptors of files, in the order in which they go with a message.
fn files_of(cache: &CompilationCache) -> impl Iterator<Item = BorrowedFd<'_>> {
    cache.model.iter().chain(&cache.data).map(File::as_fd)
}

/// Whether a message has room for so many.
fn fits(files: CacheFiles) -> bool {
    files.model <= CACHE_FILES_MAX && files.data <= CACHE_FILES_MAX
}

/// A shared copy of a pool that only this process can reach.
fn copy_without_descriptor(pool: &burst_hal::Pool) -> Result<Option<ShmMemory>, ClientError> {
    if pool.fd().is_some() {
        return Ok(None);
    }
    Ok(Some(ShmMemory::copy_of(pool)?))
}

#[deny(clippy::missing_trait_methods, reason = "all that the device can do has to reach it")]
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

    fn hal_version(&self) -> HalVersion {
        self.info.hal_version()
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
        match self.ask_status(Deadline::never()) {
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

    /// There is no call that takes a question back: whoever cancels is not kept waiting, and the answer is dropped.
    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        Ok(self.survey(model, Patience::of(caller, Deadline::never()))?)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(self.prepare(model, options)?)
    }

    /// The client's user pays for it in the service, whoever the caller is here. There is no call that takes
    /// it back: whoever cancels is not kept waiting, and a model that is made all the same is released.
    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(options.deadline));
        Ok(self.prepare_with(model, options, patience)?)
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(options.deadline));
        Ok(self.prepare_caching_with(model, options, cache, patience)?)
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(deadline));
        Ok(self.prepare_from_cache_with(cache, deadline, patience)?)
    }

    /// The client's user pays for it in the service, whoever the caller is here.
    fn allocate(&self, request: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
        Ok(Arc::new(self.allocate_buffer(request)?))
    }
}
