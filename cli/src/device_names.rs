//! `--device`: which devices of this machine's engine there are, and which are meant.

use std::sync::Arc;

use anyhow::{Result, bail};
use burst_driver::{CpuDevice, Engine, ReferenceDevice, Variant};
use burst_hal::Device;
use burst_hal::log_tags::MANAGER;

/// What stands for all devices where several can be named.
const ALL: &str = "all";

/// The device with this name.
///
/// # Errors
/// There is none; the message says which there are.
pub(crate) fn variant(name: &str) -> Result<&'static Variant> {
    let Some(variant) = Variant::named(name) else {
        let names = Variant::ALL.map(|variant| variant.name).join(", ");
        bail!("there is no device {name}; there are: {names}");
    };
    tracing::debug!(target: MANAGER, name, "the device that is meant");
    Ok(variant)
}

/// The devices with these names, each once, in the order in which they are named; `all` of them where that is
/// said.
///
/// # Errors
/// As [`variant`].
pub(crate) fn variants(names: &[String]) -> Result<Vec<&'static Variant>> {
    let mut found: Vec<&'static Variant> = Vec::new();
    for name in names {
        let meant = match name.as_str() {
            ALL => Variant::ALL.to_vec(),
            name => vec![variant(name)?],
        };
        for variant in meant {
            if found.iter().all(|known| known.name != variant.name) {
                found.push(variant);
            }
        }
    }
    Ok(found)
}

/// Devices in this process with these names, each once, in the order in which they are named: those of this
/// engine, and the reference device.
///
/// # Errors
/// As [`variant`].
pub(crate) fn local(names: &[String], engine: &Arc<Engine>) -> Result<Vec<Arc<dyn Device>>> {
    let mut found: Vec<Arc<dyn Device>> = Vec::new();
    for name in names {
        if found.iter().any(|known| known.name() == name) {
            continue;
        }
        let device: Arc<dyn Device> = match name.as_str() {
            ReferenceDevice::NAME => Arc::new(ReferenceDevice::default()),
            name => Arc::new(CpuDevice::of(engine, variant(name)?)),
        };
        found.push(device);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_in_this_process_have_the_names_that_were_given() {
        let names = ["nnapi-reference", "cpu-quant", "nnapi-reference", "cpu"].map(str::to_owned);
        let engine = Arc::new(Engine::default());
        let devices = local(&names, &engine).unwrap();
        let names: Vec<&str> = devices.iter().map(|device| device.name()).collect();
        assert_eq!(names, ["nnapi-reference", "cpu-quant", "cpu"]);
        assert!(local(&["gpu".to_owned()], &engine).is_err());
    }

    #[test]
    fn devices_are_named_once_each() {
        let named = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            variants(&names).unwrap().iter().map(|variant| variant.name).collect()
        };
        assert_eq!(named(&["cpu-quant", "cpu", "cpu-quant"]), ["cpu-quant", "cpu"]);
        assert_eq!(named(&["all", "cpu"]).len(), Variant::ALL.len());
        let unknown = variants(&["gpu".to_owned()]).unwrap_err().to_string();
        assert!(unknown.contains("gpu") && unknown.contains("cpu-small-kernels"), "{unknown}");
    }
}
