//! One service, whose devices share a connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use burst_client::{Backoff, Client, ClientError, ConnectOptions, Deadline, ReconnectingDevice};

use crate::patience::Patience;
use crate::switches::Switches;

/// How long one attempt to connect may take: a program that starts does not wait for a service that hangs.
const GREETING_LONGEST: Duration = Duration::from_secs(2);

/// A service at a socket.
#[derive(Debug)]
pub(crate) struct Service {
    path: PathBuf,
    patience: Patience,
    client: Mutex<Option<Client>>,
}

impl Service {
    /// Nothing is connected yet. Calls take as long as the environment of this process says.
    pub(crate) fn at(path: &Path) -> Self {
        Self::within(path, Switches::of_environment().patience)
    }

    /// The same, with this limit of calls.
    pub(crate) fn within(path: &Path, patience: Patience) -> Self {
        Service { path: path.to_owned(), patience, client: Mutex::default() }
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// The connection there is, or a new one.
    fn client(&self, deadline: Deadline) -> Result<Client, ClientError> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().filter(|client| client.is_alive()) {
            return Ok(client.clone());
        }
        let options = ConnectOptions::default().until(deadline);
        Ok(client.insert(Client::connect_with(&self.path, &options)?).clone())
    }

    /// Names of the devices that it has.
    pub(crate) fn device_names(&self) -> Result<Vec<String>, ClientError> {
        let until = Deadline::after(GREETING_LONGEST);
        self.client(until)?.device_names_until(until)
    }

    /// A device of it, which outlives the connection.
    pub(crate) fn device(self: &Arc<Self>, name: &str) -> Result<ReconnectingDevice, ClientError> {
        let service = Arc::clone(self);
        ReconnectingDevice::with_connector(name, Backoff::RESTART, move |deadline| {
            service.client(deadline.min(Deadline::after(GREETING_LONGEST)))
        })
    }
}
