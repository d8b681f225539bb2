//! Looking for services.
//!
//! `BURST_SOCKET` names the sockets, with colons between them; without it, whatever is called `burst*.sock` in
//! `$XDG_RUNTIME_DIR`, and `*.sock` in `/run/burst`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::devices::{REFERENCE_NAME, RuntimeDevice};
use crate::service::Service;

/// Sockets that are tried: a machine has one service, or one per vendor.
const SOCKETS_MAX: usize = 16;
/// Devices that one service may bring: what it says is believed up to here.
const DEVICES_MAX: usize = 64;

/// Devices of all services that answer, in the order of their sockets' paths.
pub(crate) fn devices_of_services() -> Vec<Arc<RuntimeDevice>> {
    let sockets = sockets(|name| std::env::var_os(name), Path::new("/run/burst"));
    devices_at(&sockets)
}

/// Devices of the services that listen at these sockets.
pub(crate) fn devices_at(sockets: &[PathBuf]) -> Vec<Arc<RuntimeDevice>> {
    let mut devices: Vec<Arc<RuntimeDevice>> = Vec::new();
    for socket in sockets {
        let service = Arc::new(Service::at(socket));
        let names = match service.device_names() {
            Ok(names) => names,
            Err(error) => {
                tracing::info!(socket = %socket.display(), %error, "no service");
                continue;
            }
        };
        if names.len() > DEVICES_MAX {
            let (socket, left_out) = (socket.display(), names.len() - DEVICES_MAX);
            tracing::warn!(%socket, left_out, "the service has too many devices; the last are left out");
        }
        for name in names.iter().take(DEVICES_MAX) {
            let known_as = free_name(name, socket, &devices);
            match RuntimeDevice::of_service(&service, name, known_as) {
                Ok(device) => devices.push(device),
                Err(error) => tracing::warn!(name, %error, "the device is left out"),
            }
        }
    }
    devices
}

/// The name itself, or with the socket's where another device has it: clients choose devices by name.
fn free_name(name: &str, socket: &Path, devices: &[Arc<RuntimeDevice>]) -> String {
    let is_taken =
        |name: &str| name == REFERENCE_NAME || devices.iter().any(|one| one.name() == name);
    if !is_taken(name) {
        return name.to_owned();
    }
    let stem = socket.file_stem().unwrap_or_default().to_string_lossy();
    let mut longer = format!("{name}@{stem}");
    while is_taken(&longer) {
        longer.push('+');
    }
    longer
}

/// Sockets that there may be.
fn sockets(variable: impl Fn(&str) -> Option<OsString>, system: &Path) -> Vec<PathBuf> {
    let named = variable("BURST_SOCKET").filter(|paths| !paths.is_empty());
    let found: Vec<PathBuf> = match named {
        Some(paths) => std::env::split_paths(&paths).collect(),
        None => {
            let own = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
            let own = own.into_iter().flat_map(|folder| in_folder(&folder, b"burst"));
            own.chain(in_folder(system, b"")).collect()
        }
    };
    let mut seen = HashSet::new();
    let is_new =
        |path: &PathBuf| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
    let mut found: Vec<PathBuf> = found.into_iter().filter(is_new).collect();
    if let Some(first) = found.get(SOCKETS_MAX) {
        let left_out = found.len() - SOCKETS_MAX;
        tracing::warn!(first = %first.display(), left_out, "too many sockets; these are not tried");
    }
    found.truncate(SOCKETS_MAX);
    found
}

/// What is called `PREFIX*.sock` there, by name.
fn in_folder(folder: &Path, prefix: &[u8]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(b".sock")
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_socket).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_by_name_in_order_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let (own, system) = (folder.path().join("own"), folder.path().join("system"));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&system).unwrap();
        for path in ["own/burst-b.sock", "own/burst.sock", "own/other.sock", "own/burst.txt"] {
            std::fs::write(folder.path().join(path), "").unwrap();
        }
        std::fs::write(system.join("gpu.sock"), "").unwrap();
        std::os::unix::fs::symlink(own.join("burst.sock"), system.join("same.sock")).unwrap();
        let with = |name: &'static str, value: OsString| {
            sockets(move |asked| (asked == name).then(|| value.clone()), &system)
        };
        let want = vec![own.join("burst-b.sock"), own.join("burst.sock"), system.join("gpu.sock")];
        assert_eq!(with("XDG_RUNTIME_DIR", own.clone().into()), want);
        assert_eq!(
            with("BURST_SOCKET", "/a.sock:/b.sock".into()),
            [PathBuf::from("/a.sock"), PathBuf::from("/b.sock"),]
        );
        assert_eq!(sockets(|_| None, Path::new("/none")), Vec::<PathBuf>::new());
        assert!(devices_at(&want).is_empty(), "files are no services");
    }
}
