//! What the targets have in common that go as far as the CPU driver.

use std::sync::{Arc, OnceLock};

use burst_driver::{CacheKey, CpuDevice};
use burst_verify::fuzzing::{Finding, Seen};

/// The device that they judge: one for all inputs, as in a service. It keeps compilations.
pub(crate) fn device() -> &'static Arc<CpuDevice> {
    static DEVICE: OnceLock<Arc<CpuDevice>> = OnceLock::new();
    DEVICE.get_or_init(|| {
        let key = CacheKey::new([7; CacheKey::BYTES]);
        Arc::new(CpuDevice::default().with_cache_key(key))
    })
}

/// Whether something was executed to its end.
///
/// # Panics
/// Something was found.
pub(crate) fn succeeded(judged: Result<Seen, Finding>) -> bool {
    match judged {
        Ok(seen) => seen.succeeded > 0,
        Err(finding) => panic!("{finding}"),
    }
}
