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

/// The devices with these names, in the order in which they are named; `all` of them where that is said.
///
/// # Errors
/// As [`variant`]; one is named twice.
pub(crate) fn variants(names: &[String]) -> Result<Vec<&'static Variant>> {
    check_each_once(names)?;
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

/// Refuses a name that is there twice.
fn check_each_once(names: &[String]) -> Result<()> {
    match (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        Some(at) => bail!("the device {} is named twice", names[at]),
        None => Ok(()),
    }
}

/// Devices in this process with these names, in the order in which they are named: those of this engine, and the
/// reference device.
///
/// # Errors
/// As [`variants`].
pub(crate) fn local(names: &[String], engine: &Arc<Engine>) -> Result<Vec<Arc<dyn Device>>> {
    check_each_once(names)?;
    let mut found: Vec<Arc<dyn Device>> = Vec::new();
    for name in names {
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
        let names = ["nnapi-reference", "cpu-quant", "cpu"].map(str::to_owned);
        let engine = Arc::new(Engine::default());
        let devices = local(&names, &engine).unwrap();
        let names: Vec<&str> = devices.iter().map(|device| device.name()).collect();
        assert_eq!(names, ["nnapi-reference", "cpu-quant", "cpu"]);
        assert!(local(&["gpu".to_owned()], &engine).is_err());
    }

    #[test]
    fn a_device_is_named_once() {
        let named = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            variants(&names).unwrap().iter().map(|variant| variant.name).collect()
        };
        assert_eq!(named(&["cpu-quant", "cpu"]), ["cpu-quant", "cpu"]);
        let twice = ["cpu", "cpu-quant", "cpu"].map(str::to_owned);
        let said = variants(&twice).unwrap_err().to_string();
        assert_eq!(said, "the device cpu is named twice");
        assert!(local(&twice, &Arc::new(Engine::default())).is_err());
        assert_eq!(named(&["all", "cpu"]).len(), Variant::ALL.len());
        let unknown = variants(&["gpu".to_owned()]).unwrap_err().to_string();
        assert!(unknown.contains("gpu") && unknown.contains("cpu-small-kernels"), "{unknown}");
    }
}
