//! A driver process of this program's own: the program again, serving the socket it inherits.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use burst_client::Client;
use burst_driver::{CpuDevice, DeviceOptions};
use burst_harness::HarnessError;
use burst_harness::model::Connection;
use burst_server::{Service, ServiceOptions};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// The argument with which this program is started as a driver process.
const ARGUMENT: &str = "--serve-driver";

/// Serves, where this process was started for that: the program must do nothing else before.
#[must_use]
pub fn serve_driver_if_asked() -> Option<ExitCode> {
    let asked = std::env::args().nth(1).is_some_and(|argument| argument == ARGUMENT);
    asked.then(|| match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benches: {error}");
            ExitCode::from(2)
        }
    })
}

fn serve() -> Result<(), HarnessError> {
    fmq::warm_up();
    let socket: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
    let service = Service::new(vec![Arc::new(device(1, true))], ServiceOptions::default());
    service.serve_socket(socket).map_err(HarnessError::peer)
}

/// Our device, with its kernels or with the reference of every operation.
pub(super) fn device(threads: u32, fast_kernels: bool) -> CpuDevice {
    let threads = usize::try_from(threads).unwrap_or(usize::MAX);
    CpuDevice::new(DeviceOptions { threads, fast_kernels, ..DeviceOptions::default() })
}

/// A child that serves us and ends when we hang up.
struct Process(Child);

impl Drop for Process {
    /// The connection has been dropped by now: the child sees the hang-up and ends by itself.
    fn drop(&mut self) {
        if self.0.wait().is_err() {
            let _ = self.0.kill();
        }
    }
}

/// Starts a driver process with one thread, and connects to it.
pub(super) fn connect() -> Result<Connection, HarnessError> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(HarnessError::system("socketpair"))?;
    let child = Command::new("/proc/self/exe")
        .arg(ARGUMENT)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()?;
    let process = Process(child);
    let client = Client::from_socket(ours).map_err(HarnessError::peer)?;
    Ok(Connection { client, guard: Box::new(process) })
}
