//! A model, divided among devices and prepared by them.

mod assemble;
mod cache_files;
mod compile;
mod job;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::validate::Direction;
use burst_hal::{CACHE_TOKEN_BYTES, ExecutionPreference, PrepareOptions, Priority, TimePoint};

use self::compile::compile;
use self::job::Job;
use crate::compiled::Compiled;
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::partition::Plan;
use crate::process::check_process;
use crate::registry::Registry;
use crate::supported::check_list;
use crate::switches::Switches;

/// Memory of an argument should start at a multiple of this: a cache line, which the widest vectors fit too.
const PREFERRED_ALIGNMENT: u32 = 64;
/// And be as long as a multiple of this.
const PREFERRED_PADDING: u32 = 64;

/// What a priority is called in the functions of NNAPI, where the HAL has numbers of its own.
#[must_use]
pub fn priority_code(priority: Priority) -> i32 {
    match priority {
        Priority::Low => 90,
        Priority::Medium => 100,
        Priority::High => 110,
    }
}

/// A model that is being prepared, or is.
#[derive(Debug)]
pub struct Compilation {
    /// No other compilation of this process has it.
    number: u64,
    model: Arc<burst_hal::Model>,
    devices: Vec<Arc<RuntimeDevice>>,
    /// Whether the application named the devices: then no other runs what fails.
    is_explicit: bool,
    switches: Switches,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Building(Settings),
    Ready(Arc<Compiled>),
    /// It is being finished, or that has failed.
    Failed,
}

/// What was set before it is finished.
#[derive(Debug, Clone)]
struct Settings {
    preference: ExecutionPreference,
    priority: Priority,
    timeout: Option<Duration>,
    cache: Option<CachePlace>,
}

/// Where compilations are kept.
#[derive(Debug, Clone)]
struct CachePlace {
    directory: PathBuf,
    token: [u8; CACHE_TOKEN_BYTES],
}

impl Compilation {
    /// Any devices of the registry may run parts of the model, and the reference device whatever fails.
    ///
    /// # Errors
    /// BAD_STATE for a model that is not finished, or invalid.
    pub fn new(model: &Arc<Model>, registry: &Registry) -> Result<Arc<Self>> {
        let devices = registry.devices().to_vec();
        Self::starting(model, devices, false, registry.switches())
    }

    /// These devices run the model, and no other.
    ///
    /// # Errors
    /// As [`Compilation::new`]; BAD_DATA for no device, or one that stands there twice.
    pub fn for_devices(model: &Arc<Model>, devices: &[Arc<RuntimeDevice>]) -> Result<Arc<Self>> {
        check_process()?;
        check_list(devices)?;
        Self::starting(model, devices.to_vec(), true, Switches::of_environment())
    }

    fn starting(
        model: &Model,
        devices: Vec<Arc<RuntimeDevice>>,
        is_explicit: bool,
        switches: Switches,
    ) -> Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let model = model.hal()?;
        let settings = Settings {
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            timeout: None,
            cache: None,
        };
        let state = Mutex::new(State::Building(settings));
        // Relaxed: a number that orders nothing.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Compilation { number, model, devices, is_explicit, switches, state }))
    }

    /// What it should be good at.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for a code without meaning.
    pub fn set_preference(&self, preference: i32) -> Result<()> {
        self.building(|settings| {
            let unknown = || Error::bad_data(format!("there is no preference {preference}"));
            settings.preference = ExecutionPreference::from_code(preference).ok_or_else(unknown)?;
            Ok(())
        })
    }

    /// Where compilations are kept between runs of the program: one file or more for each part that a device
    /// prepares. A folder that cannot be used is no error: nothing is kept then.
    ///
    /// # Errors
    /// BAD_STATE once finished.
    pub fn set_caching(&self, directory: &Path, token: [u8; 32]) -> Result<()> {
        self.building(|settings| {
            settings.cache = Some(CachePlace { directory: directory.to_owned(), token });
            Ok(())
        })
    }

    /// How urgent its executions are.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for a code without meaning.
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        self.building(|settings| {
            let all = [Priority::Low, Priority::Medium, Priority::High];
            let meant = all.into_iter().find(|one| priority_code(*one) == priority);
            let unknown = || Error::bad_data(format!("there is no priority {priority}"));
            settings.priority = meant.ok_or_else(unknown)?;
            Ok(())
        })
    }

    /// How long preparing may take; 0 for any time.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA unless it is for exactly one named device.
    pub fn set_timeout(&self, nanos: u64) -> Result<()> {
        let is_for_one_device = self.is_for_one_device();
        self.building(|settings| {
            if !is_for_one_device {
                return Err(not_for_one_device());
            }
            settings.timeout = (nanos > 0).then(|| Duration::from_nanos(nanos));
            Ok(())
        })
    }

    /// Sets an attribute that an extension defines for compilations.
    ///
    /// # Errors
    /// BAD_STATE once finished; otherwise BAD_DATA: no extension of any device has attributes.
    pub fn add_extension_attribute(&self, extension: &str, code: u16) -> Result<()> {
        self.building(|_| Err(no_attribute(extension, code)))
    }

    fn building(&self, change: impl FnOnce(&mut Settings) -> Result<()>) -> Result<()> {
        check_process()?;
        match &mut *self.lock() {
            State::Building(settings) => change(settings),
            State::Ready(_) | State::Failed => Err(Error::bad_state("the compilation is finished")),
        }
    }

    /// Divides the model and prepares its parts.
    ///
    /// # Errors
    /// BAD_STATE the second time. BAD_DATA for an operation that none of the devices runs; where no other device
    /// may run what fails, whatever the devices say.
    pub fn finish(&self) -> Result<()> {
        check_process()?;
        let mut state = self.lock();
        let State::Building(settings) = &*state else {
            return Err(Error::bad_state("the compilation is finished"));
        };
        let Settings { preference, priority, timeout, cache } = settings.clone();
        *state = State::Failed;
        drop(state); // preparing takes its time
        let deadline = timeout.map(TimePoint::after);
        let compiled = compile(&Job {
            model: &self.model,
            devices: &self.devices,
            is_explicit: self.is_explicit,
            switches: self.switches,
            options: PrepareOptions { preference, priority, deadline },
            cache: cache.as_ref(),
        });
        let compiled = compiled.inspect_err(|error| tracing::info!(%error, "not compiled"))?;
        *self.lock() = State::Ready(Arc::new(compiled));
        Ok(())
    }

    /// Bytes that an input's memory should start at a multiple of.
    ///
    /// # Errors
    /// BAD_STATE before it is finished; BAD_DATA for an input that there is not.
    pub fn preferred_memory_alignment_for_input(&self, index: u32) -> Result<u32> {
        self.preferred(Direction::Input, index, PREFERRED_ALIGNMENT)
    }

    /// Bytes that an output's memory should start at a multiple of.
    ///
    /// # Errors
    /// As for an input.
    pub fn preferred_memory_alignment_for_output(&self, index: u32) -> Result<u32> {
        self.preferred(Direction::Output, index, PREFERRED_ALIGNMENT)
    }

    /// Bytes that an input's length should be a multiple of.
    ///
    /// # Errors
    /// As for the alignment.
    pub fn preferred_memory_padding_for_input(&self, index: u32) -> Result<u32> {
        self.preferred(Direction::Input, index, PREFERRED_PADDING)
    }

    /// Bytes that an output's length should be a multiple of.
    ///
    /// # Errors
    /// As for the alignment.
    pub fn preferred_memory_padding_for_output(&self, index: u32) -> Result<u32> {
        self.preferred(Direction::Output, index, PREFERRED_PADDING)
    }

    fn preferred(&self, direction: Direction, index: u32, preferred: u32) -> Result<u32> {
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        self.compiled()?.port(direction, index)?;
        Ok(preferred)
    }

    /// Who runs what. Numbers of devices are positions in [`Compilation::devices`].
    ///
    /// # Errors
    /// BAD_STATE before it is finished, or where that has failed.
    pub fn plan(&self) -> Result<Arc<Plan>> {
        Ok(Arc::clone(&self.compiled()?.plan))
    }

    /// The devices that may run parts of it.
    #[must_use]
    pub fn devices(&self) -> &[Arc<RuntimeDevice>] {
        &self.devices
    }

    /// Whether the application named exactly one device: only then times are measured and limited.
    pub(crate) fn is_for_one_device(&self) -> bool {
        self.is_explicit && self.devices.len() == 1
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn switches(&self) -> Switches {
        self.switches
    }

    /// What is executed.
    ///
    /// # Errors
    /// BAD_STATE before it is finished, or where that has failed.
    pub(crate) fn compiled(&self) -> Result<Arc<Compiled>> {
        check_process()?;
        match &*self.lock() {
            State::Ready(compiled) => Ok(Arc::clone(compiled)),
            State::Building(_) => Err(Error::bad_state("the compilation is not finished")),
            State::Failed => Err(Error::bad_state("the compilation has failed")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of a time-out or a measurement.
pub(crate) fn not_for_one_device() -> Error {
    Error::bad_data("only a compilation for exactly one named device has time-outs and measures")
}

/// The refusal of an attribute: devices tell which types their extensions have, and know no attributes.
pub(crate) fn no_attribute(extension: &str, code: u16) -> Error {
    Error::bad_data(format!("no device has an attribute {code} of an extension {extension}"))
}
