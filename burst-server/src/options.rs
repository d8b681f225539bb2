//! How a service behaves.

use std::sync::Arc;
use std::time::Duration;

use burst_wire::Features;
use fmq::Wait;

use crate::admission::{Access, Limits};
use crate::burst::BurstContexts;
use crate::process::{Performance, SandboxReport};

/// How long a burst keeps the driver's resources while no request comes.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// How a service behaves; the default is right for most.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// What each client may use.
    pub limits: Limits,
    /// Who may connect.
    pub access: Access,
    /// How a burst waits for requests where its client leaves that to the service.
    pub wait: Wait,
    /// Additions to HAL 1.2 that are offered.
    pub features: Features,
    /// The program's name, for clients.
    pub name: String,
    /// After how long without requests a burst releases what the driver can allocate again, and no
    /// longer requests the high-performance state; `None` for never. The next request brings both
    /// back.
    pub idle_time: Option<Duration>,
    /// How the system is asked to stay quick while bursts live; by default it is not.
    pub performance: Arc<Performance>,
    /// How far the sandbox is in force, for the metrics.
    pub sandbox: SandboxReport,
    /// Makes the servers of bursts; `None` for a thread of this crate each.
    pub contexts: Option<Arc<dyn BurstContexts>>,
    /// Times every request for the metrics, also those whose client did not ask for it. The clock is then read once more per request.
    pub time_requests: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            limits: Limits::default(),
            access: Access::default(),
            wait: Wait::default(),
            features: Features::ALL,
            name: "burst".to_owned(),
            idle_time: Some(IDLE_TIME),
            performance: Arc::new(Performance::off()),
            sandbox: SandboxReport::off(),
            contexts: None,
            time_requests: false,
        }
    }
}
