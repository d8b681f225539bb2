//! A connection to a service.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burst_wire::Features;
use burst_wire::control::{Answer, Call};

use crate::connection::Link;
use crate::{Backoff, ClientError, ConnectOptions, Deadline, RemoteDevice, connect};

/// A connection to a driver service. Cheap to clone; it ends with the last object made from it.
#[derive(Debug, Clone)]
pub struct Client {
    link: Arc<Link>,
    /// Where it connected to; not known for a socket that somebody else connected.
    address: Option<Arc<PathBuf>>,
}

/// Who serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceInfo {
    /// Its process, for people: 0 where it is not known.
    pub pid: u32,
    /// Its program's name.
    pub name: String,
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// Additions to HAL 1.2 that both ends know.
    pub features: Features,
}

impl Client {
    /// Connects to the service that listens at `path`.
    ///
    /// # Errors
    /// [`ClientError::NobodyListens`], [`ClientError::MayNotConnect`],
    /// [`ClientError::NotPermitted`], [`ClientError::Version`], [`ClientError::NotThisProtocol`]
    /// and others, each a sentence for people.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        Self::connect_with(path, &ConnectOptions::default())
    }

    /// As [`Client::connect`], with what the program requires of the service and of the time.
    ///
    /// # Errors
    /// As [`Client::connect`]; [`ClientError::Timeout`], [`ClientError::FeatureMissing`].
    pub fn connect_with(
        path: impl AsRef<Path>,
        options: &ConnectOptions,
    ) -> Result<Self, ClientError> {
        let path = path.as_ref();
        let client = Self::greet(connect::dial(path, options.deadline)?, options)?;
        Ok(Client { address: Some(Arc::new(path.to_owned())), ..client })
    }

    /// Connects again to where this client had connected, as often as `backoff` says: for a
    /// service that somebody starts again. Nothing of this connection is carried over; see
    /// [`ReconnectingDevice`](crate::ReconnectingDevice) and
    /// [`ReconnectingStream`](crate::ReconnectingStream) for that.
    ///
    /// # Errors
    /// The last attempt's; [`ClientError::NoAddress`] for a client that was made from a socket.
    pub fn reconnect(&self, backoff: &Backoff, deadline: Deadline) -> Result<Self, ClientError> {
        let path = self.address.as_deref().ok_or(ClientError::NoAddress)?;
        let options = ConnectOptions::default().until(deadline);
        let connect = || Client::connect_with(path, &options);
        Ok(backoff.run(deadline, ClientError::may_pass, connect)?.0)
    }

    /// Takes a connected `SOCK_SEQPACKET` socket at whose other end a service is: one end of a
    /// socket pair, the other of which a child process serves.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn from_socket(socket: OwnedFd) -> Result<Self, ClientError> {
        Self::greet(socket, &ConnectOptions::default())
    }

    /// As [`Client::from_socket`], using none but these additions to HAL 1.2.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn from_socket_with(socket: OwnedFd, features: Features) -> Result<Self, ClientError> {
        Self::greet(socket, &ConnectOptions { features, ..ConnectOptions::default() })
    }

    /// As [`Client::from_socket`], with what the program requires of the service and of the time.
    ///
    /// # Errors
    /// As [`Client::connect_with`].
    pub fn greet(socket: OwnedFd, options: &ConnectOptions) -> Result<Self, ClientError> {
        let greeted = connect::greet(&socket, options)?;
        let connect::Peer { pid, name, version, features, .. } = &greeted.peer;
        tracing::debug!(pid, name, version, %features, "connected");
        Ok(Client { link: Link::start(socket, greeted)?, address: None })
    }

    /// Who serves.
    #[must_use]
    pub fn service(&self) -> ServiceInfo {
        let peer = &self.link.peer;
        let (name, version) = (peer.name.clone(), peer.version);
        ServiceInfo { pid: peer.pid, name, version, features: peer.features }
    }

    /// Process id of the driver service.
    #[must_use]
    pub fn driver_pid(&self) -> u32 {
        self.link.peer.pid
    }

    /// Whether the service is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_usable()
    }

    /// Names of the devices on offer.
    ///
    /// # Errors
    /// The service is gone.
    pub fn device_names(&self) -> Result<Vec<String>, ClientError> {
        self.device_names_until(Deadline::never())
    }

    /// As [`Client::device_names`], with no answer later than this.
    ///
    /// # Errors
    /// As [`Client::device_names`]; [`ClientError::Timeout`].
    pub fn device_names_until(&self, deadline: Deadline) -> Result<Vec<String>, ClientError> {
        match self.link.quick_call(Call::ListDevices, &[], deadline)? {
            (Answer::Devices(names), _) => {
                Ok(names.0.iter().map(|name| name.as_str().to_owned()).collect())
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// All devices on offer.
    ///
    /// # Errors
    /// The service is gone.
    pub fn devices(&self) -> Result<Vec<RemoteDevice>, ClientError> {
        let count = self.device_names()?.len();
        (0..count).map(|index| self.device_at(index, Deadline::never())).collect()
    }

    /// The device of this name.
    ///
    /// # Errors
    /// [`ClientError::NoDevice`] with the names there are.
    pub fn device(&self, name: &str) -> Result<RemoteDevice, ClientError> {
        self.device_until(name, Deadline::never())
    }

    /// As [`Client::device`], with no answer later than this.
    ///
    /// # Errors
    /// As [`Client::device`]; [`ClientError::Timeout`].
    pub fn device_until(
        &self,
        name: &str,
        deadline: Deadline,
    ) -> Result<RemoteDevice, ClientError> {
        let available = self.device_names_until(deadline)?;
        match available.iter().position(|one| one == name) {
            Some(index) => self.device_at(index, deadline),
            None => Err(ClientError::NoDevice { name: name.to_owned(), available }),
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    fn device_at(&self, index: usize, deadline: Deadline) -> Result<RemoteDevice, ClientError> {
        let number = u32::try_from(index).map_err(|_| ClientError::UnexpectedAnswer)?;
        RemoteDevice::query(&self.link, number, deadline)
    }
}
