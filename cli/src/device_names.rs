//! `--device`: which devices of this machine's engine there are, and which are meant.

use anyhow::{Result, bail};
use burst_driver::Variant;

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

#[cfg(test)]
mod tests {
    use super::*;

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
