//! A connection to a service, or to a driver process of our own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_client::{
    Client, ClientError, ConnectOptions, Deadline, RemoteDevice, default_socket_path,
};
use burst_hal::TimePoint;
use pyo3::prelude::*;

use crate::errors::{self, Class};
use crate::private_driver::{DriverProcess, Program};
use crate::waiting::{aside, deadline, lock};

/// Between attempts to reach a service that is being started again: at first, and at most, so that Ctrl-C is heard.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How a connection is made, the first time and again.
#[derive(Debug, Clone)]
enum Way {
    Socket(PathBuf),
    Private(Program),
}

/// A connection that is there, alive or not. The process, if it is ours, ends with the last that uses it.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    client: Client,
    process: Option<Arc<DriverProcess>>,
}

/// A device to prepare models on, and what has to live as long as those.
pub(crate) struct Found {
    pub(crate) device: RemoteDevice,
    pub(crate) process: Option<Arc<DriverProcess>>,
}

/// See `package/burst/driver.py`.
#[pyclass(module = "burst._burst", frozen)]
pub(crate) struct Connection {
    way: Way,
    connected: Mutex<Option<Connected>>,
}

fn no_service(error: &ClientError) -> PyErr {
    errors::of_client(error, Class::NoService)
}

impl Way {
    /// One attempt.
    fn connect(&self, deadline: Deadline) -> PyResult<Connected> {
        match self {
            Way::Socket(path) => {
                let options = ConnectOptions::default().until(deadline);
                let client = Client::connect_with(path, &options);
                let client = client.map_err(|error| no_service(&error))?;
                Ok(Connected { client, process: None })
            }
            Way::Private(program) => {
                let name = program.path.display();
                let cannot = |cause: &dyn std::fmt::Display| {
                    errors::raise(Class::NoService, &format!("cannot start {name}: {cause}"))
                };
                let (process, socket) = program.start().map_err(|error| cannot(&error))?;
                let options = ConnectOptions::default().until(deadline);
                let client = Client::greet(socket, &options).map_err(|error| match error {
                    ClientError::Timeout => no_service(&error),
                    error => cannot(&error),
                })?;
                Ok(Connected { client, process: Some(Arc::new(process)) })
            }
        }
    }

    /// As often as it takes, of a service that somebody else starts again.
    fn reconnect(&self, deadline: Deadline) -> PyResult<Connected> {
        let Way::Socket(path) = self else {
            let again = self.clone();
            return aside(move || again.connect(deadline));
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let (path, options) = (path.clone(), ConnectOptions::default().until(deadline));
            let error = match aside(move || Ok(Client::connect_with(path, &options)))? {
                Ok(client) => return Ok(Connected { client, process: None }),
                Err(error) => error,
            };
            let now = TimePoint::now().nanos;
            let left = deadline.as_ns().map(|end| Duration::from_nanos(end.saturating_sub(now)));
            if !may_pass(&error) || left.is_some_and(|left| left.is_zero()) {
                return Err(no_service(&error));
            }
            Python::attach(|py| py.check_signals())?;
            std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// Whether a service that is being started again can be the reason.
fn may_pass(error: &ClientError) -> bool {
    let not_yet = matches!(
        error,
        ClientError::NobodyListens { .. }
            | ClientError::Connect { .. }
            | ClientError::TooManyClients { .. }
            | ClientError::NoGreeting
            | ClientError::NotThisProtocol
            | ClientError::Wire(_)
    );
    not_yet || error.is_loss()
}

impl Connection {
    /// The device of this name.
    pub(crate) fn device(&self, name: &str) -> PyResult<Found> {
        let Connected { client, process } = self.current()?;
        let name = name.to_owned();
        let device = aside(move || {
            client.device(&name).map_err(|error| errors::of_client(&error, Class::Refused))
        })?;
        Ok(Found { device, process })
    }

    fn current(&self) -> PyResult<Connected> {
        let closed = || errors::raise(Class::NoService, &"the driver was closed");
        lock(&self.connected)?.clone().ok_or_else(closed)
    }

    fn first(py: Python<'_>, way: Way, timeout: Option<f64>) -> PyResult<Self> {
        let deadline = deadline(timeout)?;
        let first = way.clone();
        let connected = py.detach(|| aside(move || first.connect(deadline)))?;
        Ok(Connection { way, connected: Mutex::new(Some(connected)) })
    }
}

#[pymethods]
impl Connection {
    #[staticmethod]
    fn connect(py: Python<'_>, path: Option<PathBuf>, timeout: Option<f64>) -> PyResult<Self> {
        Self::first(py, Way::Socket(path.unwrap_or_else(default_socket_path)), timeout)
    }

    #[staticmethod]
    fn start(
        py: Python<'_>,
        path: OsString,
        devices: String,
        threads: u32,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        Self::first(py, Way::Private(Program { path, devices, threads }), timeout)
    }

    /// Whether there had to be another connection.
    fn reconnect(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let deadline = deadline(timeout)?;
        py.detach(|| {
            let before = self.current()?;
            if before.client.is_alive() {
                return Ok(false);
            }
            let again = self.way.reconnect(deadline)?;
            *lock(&self.connected)? = Some(again);
            Ok(true)
        })
    }

    fn devices(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let Connected { client, .. } = self.current()?;
            aside(move || client.device_names().map_err(|error| no_service(&error)))
        })
    }

    fn pid(&self) -> PyResult<u32> {
        Ok(self.current()?.client.driver_pid())
    }

    fn is_alive(&self) -> bool {
        self.current().is_ok_and(|connected| connected.client.is_alive())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let closed = lock(&self.connected)?.take();
            drop(closed);
            Ok(())
        })
    }
}
