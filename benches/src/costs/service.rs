//! A service on a thread of this process, and a client that is connected to it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use burst_client::{Client, Deadline};
use burst_hal::{Device, ErrorStatus};
use burst_harness::HarnessError;
use burst_server::{ServerError, Service, ServiceOptions};

/// How long one answer may take: far above any execution.
const PATIENCE: Duration = Duration::from_secs(300);

/// The two of them. They end with [`Connected::end`].
pub(super) struct Connected {
    pub(super) client: Client,
    service: JoinHandle<Result<(), ServerError>>,
}

impl Connected {
    pub(super) fn start(
        device: Arc<dyn Device>,
        options: ServiceOptions,
    ) -> Result<Connected, HarnessError> {
        let (ours, theirs) = burst_wire::socket::pair()?;
        let service = Service::new(vec![device], options);
        let service = std::thread::spawn(move || service.serve_socket(theirs));
        let client = Client::from_socket(ours).map_err(HarnessError::peer)?;
        Ok(Connected { client, service })
    }

    /// Hangs up and waits for the end of the service. Whatever was made over the connection is gone by
    /// now.
    pub(super) fn end(self) -> Result<(), HarnessError> {
        drop(self.client);
        let ended = self.service.join();
        ended.map_err(|_| HarnessError::peer("the service panicked"))?.map_err(HarnessError::peer)
    }
}

/// When an answer that does not come is given up.
pub(crate) fn patience() -> Deadline {
    Deadline::after(PATIENCE)
}

/// Whether an execution ended well.
pub(crate) fn check(status: ErrorStatus) -> Result<(), HarnessError> {
    match status {
        ErrorStatus::None => Ok(()),
        other => Err(HarnessError::peer(format!("an execution: {}", other.name()))),
    }
}
