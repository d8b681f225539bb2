//! A device of this process, and its twin that keeps compilations.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use burst_driver::{CpuDevice, Engine, Variant};
use burst_hal::{Device, Failure};

use crate::cache_key;
use crate::launching::device_launcher;

/// What a driver in this process makes of a call; one that panics has failed, as one in another process would have.
///
/// # Errors
/// The driver's.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!("a driver panicked");
        Err(Failure::general("the driver panicked"))
    })
}

pub(super) struct LocalDevice {
    device: Arc<dyn Device>,
    cpu: Option<Cpu>,
}

/// The CPU, which is made a second time with a key once somebody wants compilations kept: on the same engine, so
/// that both share threads and memory. A program that wants none has no key made in its user's name.
struct Cpu {
    engine: Arc<Engine>,
    variant: &'static Variant,
    state: Option<PathBuf>,
    keeper: OnceLock<Option<Arc<dyn Device>>>,
}

impl LocalDevice {
    /// Any device, which keeps compilations or not.
    pub(super) fn of(device: Arc<dyn Device>) -> Self {
        LocalDevice { device, cpu: None }
    }

    /// The CPU on this engine; its key lies in this folder.
    pub(super) fn cpu(
        device: Arc<dyn Device>,
        (engine, variant): (&Arc<Engine>, &'static Variant),
        state: Option<PathBuf>,
    ) -> Self {
        let cpu = Cpu { engine: Arc::clone(engine), variant, state, keeper: OnceLock::new() };
        LocalDevice { device, cpu: Some(cpu) }
    }

    pub(super) fn device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.device)
    }

    /// The twin that keeps compilations; `None` for a device without one.
    pub(super) fn keeper(&self) -> Option<Arc<dyn Device>> {
        let cpu = self.cpu.as_ref()?;
        cpu.keeper.get_or_init(|| cpu.make_keeper()).clone()
    }
}

impl Cpu {
    fn make_keeper(&self) -> Option<Arc<dyn Device>> {
        let Some(folder) = &self.state else {
            tracing::info!("no folder for state (XDG_STATE_HOME, HOME): no compilation is kept");
            return None;
        };
        match cache_key::key_in(folder) {
            Ok(key) => {
                let device = CpuDevice::of(&self.engine, self.variant).with_cache_key(key);
                Some(device_launcher().wrap(Arc::new(device)))
            }
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "no key: no compilation is kept");
                None
            }
        }
    }
}
