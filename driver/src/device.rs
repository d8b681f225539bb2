//! The device: answers questions about itself, and prepares models.

use std::sync::Arc;

use burst_hal::{
    Buffer, BufferRequest, BufferRoles, CacheFiles, Caller, Capabilities, CompilationCache, Device,
    DeviceType, ErrorStatus, ExecutionPreference, Extension, Failure, Model, PrepareOptions,
    PreparedModel, TimePoint,
};

use crate::budget::Budget;
use crate::buffers::CpuBuffer;
use crate::cache::{self, Bound, CacheError, CacheKey, Files, Restored, Seal};
use crate::engine::{DeviceOptions, Engine};
use crate::error::DriverError;
use crate::kept::Kept;
use crate::kernels::matmul_quantized::packed_weight_bytes;
use crate::log;
use crate::offer::Offer;
use crate::op::PrepareContext;
use crate::planner::{check_legal, survey};
use crate::prepared::CpuPreparedModel;
use crate::stop::Stop;
use crate::variant::Variant;

/// The CPU as a device: all of what its engine can compute, or a [`Variant`] of it.
#[derive(Debug)]
pub struct CpuDevice {
    engine: Arc<Engine>,
    variant: &'static Variant,
    /// Without one it keeps no compilations.
    cache_key: Option<CacheKey>,
    /// What it says is the build that it is of.
    build: &'static str,
}

/// A device that runs everything, on an engine of its own.
impl Default for CpuDevice {
    fn default() -> Self {
        CpuDevice::new(DeviceOptions::default())
    }
}

impl CpuDevice {
    /// A device that runs everything, on an engine of its own with these options. Its name is `cpu`.
    #[must_use]
    pub fn new(options: DeviceOptions) -> Self {
        CpuDevice::of(&Arc::new(Engine::new(options)), &Variant::CPU)
    }

    /// A device of an engine that others may use too.
    #[must_use]
    pub fn of(engine: &Arc<Engine>, variant: &'static Variant) -> Self {
        CpuDevice { engine: Arc::clone(engine), variant, cache_key: None, build: cache::BUILD }
    }

    /// With this key it keeps compilations in files, and takes those that a device of this build with the
    /// same key and the same options has kept.
    #[must_use]
    pub fn with_cache_key(self, key: CacheKey) -> Self {
        CpuDevice { cache_key: Some(key), ..self }
    }

    /// Prepares a model, for callers in the same process that want to look into it.
    ///
    /// # Errors
    /// A model that is not legal, an operation this device lacks, or one whose parameters do not
    /// make sense.
    pub fn prepare(&self, model: &Model) -> Result<CpuPreparedModel, DriverError> {
        let preference = PrepareOptions::default().preference;
        self.prepare_within(model, preference, &Budget::default())
    }

    /// The same with these options, for a caller who pays for it and may call it off.
    ///
    /// # Errors
    /// As [`CpuDevice::prepare`]; that the caller no longer wants it, or that the account does not suffice.
    pub fn prepare_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> Result<CpuPreparedModel, DriverError> {
        let budget = Budget::new(caller, options.deadline);
        let prepared = self.prepare_within(model, options.preference, &budget)?;
        Ok(prepared.with_options(options))
    }

    fn prepare_within(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        budget: &Budget<'_>,
    ) -> Result<CpuPreparedModel, DriverError> {
        log::preparing(self.name(), model);
        check_legal(model, self.engine.registry())?;
        check_deadline(budget.stop().deadline)?;
        self.plan_legal(model, preference, budget)
    }

    /// Plans a model that is legal, and tells of it.
    fn plan_legal(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        budget: &Budget<'_>,
    ) -> Result<CpuPreparedModel, DriverError> {
        let prepared = self.plan(model, preference, budget);
        log::planned(self.name(), prepared.as_ref().map(CpuPreparedModel::plan));
        prepared
    }

    /// Plans a model that is legal.
    fn plan(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        budget: &Budget<'_>,
    ) -> Result<CpuPreparedModel, DriverError> {
        self.engine.own_process();
        let DeviceOptions { fast_kernels, isa, .. } = self.engine.options();
        let context = PrepareContext { fast_kernels, isa, budget };
        let offer = self.offer();
        let prepare = || {
            let byte_weight = packed_weight_bytes(isa);
            budget.make_room_for(model, byte_weight, self.engine.huge_pages());
            CpuPreparedModel::new(model, offer, &context, preference, &self.engine)
        };
        let prepared = prepare();
        if !matches!(prepared, Err(DriverError::Refused(_))) {
            return prepared;
        }
        drop(budget.take_charge()); // of what was given up, and is gone
        match self.engine.memory().release_idle(&budget.same_account()) {
            true => prepare(),
            false => prepared,
        }
    }

    fn offer(&self) -> Offer<'_> {
        Offer { registry: self.engine.registry(), takes: self.variant.takes }
    }

    /// Prepares a model, and keeps the compilation in these files.
    fn prepare_keeping(
        &self,
        model: &Model,
        options: &PrepareOptions,
        (files, seal): (&Files<'_>, &Seal),
        caller: &Caller,
    ) -> Result<CpuPreparedModel, DriverError> {
        let recording = Budget::new(caller, options.deadline).with_kept(Kept::recording());
        let prepared = match self.prepare_within(model, options.preference, &recording) {
            // Copies of what is to be kept were charged, too: without them there may be room.
            Err(error @ DriverError::Refused(_)) => {
                drop(recording);
                tracing::info!(%error, "no room to keep the compilation");
                let budget = Budget::new(caller, options.deadline);
                return self.plan_legal(model, options.preference, &budget);
            }
            prepared => prepared?,
        };
        let kept = recording.into_kept().into_rest();
        let budget = Budget::new(caller, options.deadline);
        // The model is prepared, whatever becomes of the files.
        match files.save(seal, model, &kept, options, &budget) {
            Ok(()) => tracing::debug!("the compilation is kept"),
            Err(error) => tracing::info!(%error, "the compilation is not kept"),
        }
        Ok(prepared)
    }

    /// Makes a model ready that was kept in files.
    fn restore(
        &self,
        place: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<CpuPreparedModel, DriverError> {
        let key = self.cache_key.as_ref().ok_or(CacheError::NoKey)?;
        Files::of(place)?;
        check_deadline(deadline)?;
        let seal = self.seal(key, place, caller);
        let budget = Budget::new(caller, deadline);
        let restored = cache::load(place, &seal, &budget)?;
        let Restored { kept, constants, .. } = restored;
        let (model, options) = (&restored.model, &restored.options);
        // It was legal when it was kept, and is the same.
        let budget = budget.with_kept(Kept::restoring(kept, constants));
        let prepared = self.plan(model, options.preference, &budget)?;
        match budget.into_kept().into_rest().is_empty() {
            true => Ok(prepared.with_options(options)),
            // The plan is not the one that was kept: no planner of this build does that.
            false => {
                Err(CacheError::Malformed { kind: cache::Kind::Data, what: "it is left over" }
                    .into())
            }
        }
    }

    /// The model, rehearsed where that helps: last of all, so that nothing lies between it and the first execution but
    /// what the caller does.
    fn rehearsed(
        &self,
        prepared: CpuPreparedModel,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Arc<dyn PreparedModel> {
        if self.engine.options().fast_kernels {
            prepared.rehearse(Stop { caller: Some(caller), deadline, loop_deadline: None });
        }
        Arc::new(prepared)
    }

    /// Puts right seals on the bytes of files that this device has written for this token and caller, and that
    /// were changed since: for whoever tests what comes of a defect that writes wrong files. Says whether both
    /// begin as such files do.
    pub fn seal_again(
        &self,
        place: &CompilationCache,
        [model, data]: [&mut [u8]; 2],
        caller: &Caller,
    ) -> bool {
        let Some(key) = &self.cache_key else { return false };
        let seal = self.seal(key, place, caller);
        let Some(mac) = seal.seal_again(cache::Kind::Model, model, None) else { return false };
        seal.seal_again(cache::Kind::Data, data, Some(&mac)).is_some()
    }

    /// What files of this device have to be sealed with.
    fn seal(&self, key: &CacheKey, place: &CompilationCache, caller: &Caller) -> Seal {
        let DeviceOptions { fast_kernels, isa, .. } = self.engine.options();
        let options = format!("fast kernels: {fast_kernels}, {isa:?}");
        let bound = Bound {
            device: self.name(),
            version: self.version_string(),
            options: &options,
            build: self.build,
        };
        Seal::new(key, bound, &place.token, caller)
    }
}

/// Work for which it is too late already is not begun.
fn check_deadline(deadline: Option<TimePoint>) -> Result<(), DriverError> {
    match deadline.is_some_and(TimePoint::has_passed) {
        true => Err(DriverError::Hopeless { status: ErrorStatus::MissedDeadlinePersistent }),
        false => Ok(()),
    }
}

/// Whether there may be enough once something was given back.
fn is_exhausted(failure: &Failure) -> bool {
    failure.status == ErrorStatus::ResourceExhaustedTransient
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        self.variant.name
    }

    fn version_string(&self) -> &str {
        concat!("burst-cpu ", env!("CARGO_PKG_VERSION"))
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(self.variant.capabilities(self.engine.figures()))
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        match self.variant.has_extensions {
            true => self.engine.registry().extensions(),
            false => Vec::new(),
        }
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.supported_operations_for(model, &Caller::default())
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        let legal = check_legal(model, self.engine.registry());
        let answer = legal.and_then(|()| survey(model, self.offer(), &Budget::new(caller, None)));
        log::surveyed(self.name(), model, &answer);
        Ok(answer?)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        self.prepare_model_for(model, options, &Caller::default())
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let prepared = self.prepare_for(model, options, caller)?;
        Ok(self.rehearsed(prepared, options.deadline, caller))
    }

    fn cache_files_needed(&self) -> CacheFiles {
        match self.cache_key {
            Some(_) => cache::FILES,
            None => CacheFiles::default(),
        }
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        place: &CompilationCache,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let Some(key) = &self.cache_key else {
            return self.prepare_model_for(model, options, caller);
        };
        let files = match Files::of(place) {
            Ok(files) => files,
            Err(error) => {
                // No files at all: it is not asked for.
                if place.files() != CacheFiles::default() {
                    tracing::info!(%error, "the compilation is not kept");
                }
                return self.prepare_model_for(model, options, caller);
            }
        };
        let seal = self.seal(key, place, caller);
        let prepared = self.prepare_keeping(model, options, (&files, &seal), caller)?;
        Ok(self.rehearsed(prepared.with_options(options), options.deadline, caller))
    }

    fn prepare_model_from_cache(
        &self,
        place: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(self.rehearsed(self.restore(place, deadline, caller)?, deadline, caller))
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let is_own = |model: &Arc<dyn PreparedModel>| {
            let model = model.downcast_ref::<CpuPreparedModel>();
            model.is_some_and(|model| model.is_of(self.engine.memory()))
        };
        if !request.models.iter().all(is_own) {
            return Err(Failure::invalid("a role in a model that this device has not prepared"));
        }
        let make = || {
            CpuBuffer::allocate(&self.engine.memory().buffers, BufferRoles::new(request)?, caller)
        };
        let buffer = match make() {
            Err(refused) if is_exhausted(&refused) => {
                match self.engine.memory().release_idle(&caller.empty_charge()) {
                    true => make(),
                    false => Err(refused),
                }
            }
            other => other,
        };
        Ok(Arc::new(buffer?))
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
