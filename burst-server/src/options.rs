//! How a service behaves.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use burst_wire::Features;
use fmq::Wait;

use crate::admission::{Access, Limits};
use crate::burst::BurstContexts;
use crate::process::{Performance, SandboxReport};

/// How long a burst keeps the driver's resources while no request comes.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// How long whoever's turn it is waits for an execution that does not give way. A device that gives way does so
/// within some milliseconds, and a frame of a camera can spare as much.
const TURN_PATIENCE: Duration = Duration::from_millis(20);
/// How long executions may go on when the service is told to stop: long for an execution, short for
/// whoever waits for a restart.
const GRACE: Duration = Duration::from_secs(5);

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
    /// The most that a client may ask for: where this is [`Wait::Sleep`], bursts sleep whatever their
    /// clients want. Polling without a pause takes a core; users have equal shares of all cores but one
    /// for it, and a burst that has polled in vain for 50 ms sleeps until its next request.
    pub max_wait: Wait,
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
    /// Makes the servers of bursts, by the name of the device that their model was prepared for. The
    /// bursts of any other device get a thread of this crate each.
    pub contexts: BTreeMap<String, Arc<dyn BurstContexts>>,
    /// How many threads may compute for clients at the same time; users share them fairly. `None` for as
    /// many as the process has cores where a device computes on them
    /// ([`DeviceType::Cpu`](burst_hal::DeviceType)), and as many as clients like where none does: a
    /// device with hardware of its own knows itself what it can do at once.
    pub run_tokens: Option<NonZeroUsize>,
    /// How long whoever's turn it is to compute waits where none of those that compute ends or asks whether
    /// it should give way; `None` for as long as that takes. Then it computes beside them, and so does
    /// whoever comes until one of them gives way: one run of each user and eight in all, at most. At
    /// least a millisecond.
    pub turn_patience: Option<Duration>,
    /// How long a service that is told to stop lets executions go on before it cancels them.
    pub grace: Duration,
    /// Times every request for the metrics, also those whose client did not ask for it. The clock is then read once more per request.
    pub time_requests: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            limits: Limits::default(),
            access: Access::default(),
            wait: Wait::default(),
            max_wait: Wait::Spin,
            features: Features::ALL,
            name: "burst".to_owned(),
            idle_time: Some(IDLE_TIME),
            performance: Arc::new(Performance::off()),
            sandbox: SandboxReport::off(),
            contexts: BTreeMap::new(),
            run_tokens: None,
            turn_patience: Some(TURN_PATIENCE),
            grace: GRACE,
            time_requests: false,
        }
    }
}
