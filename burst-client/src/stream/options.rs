//! How a stream is set up.

use burst_hal::session::{LayoutOptions, StateBinding};
use burst_hal::{Extension, PrepareOptions, Route};
use fmq::Wait;

use crate::RetryPolicy;

/// How a stream is set up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamOptions {
    /// How requests travel: through the queues of a burst, or, for comparison, over the control
    /// socket.
    pub route: Route,
    /// How this end, and on request the service, waits.
    pub wait: Wait,
    /// Frames that there is room for, so that one can be filled while another waits.
    pub frames: usize,
    /// Datums of the burst's queues; see [`BurstOptions::queue_datums`](crate::BurstOptions).
    pub queue_datums: Option<usize>,
    /// Whether to measure the time in the driver.
    pub measure_timing: bool,
    /// Bytes set aside for each output whose size the model does not know.
    pub unknown_output_bytes: Option<u32>,
    /// Whether the service makes the memory for the outputs, so that it need not copy them.
    pub service_outputs: bool,
    /// States: outputs that are inputs of the next run. They stay where the driver wrote them;
    /// nothing of them is copied between runs.
    pub states: Vec<StateBinding>,
    /// What is done when the service is short of something. By default nothing: every failure is
    /// the caller's.
    pub retry: RetryPolicy,
    /// How the model is prepared.
    pub prepare: PrepareOptions,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            route: Route::Burst,
            wait: Wait::default(),
            frames: 1,
            queue_datums: None,
            measure_timing: true,
            unknown_output_bytes: None,
            service_outputs: true,
            states: Vec::new(),
            retry: RetryPolicy::NONE,
            prepare: PrepareOptions::default(),
        }
    }
}

impl StreamOptions {
    /// On a device with these extensions.
    pub(super) fn layout(&self, extensions: Vec<Extension>) -> LayoutOptions {
        LayoutOptions {
            extensions,
            frames: self.frames,
            states: self.states.clone(),
            unknown_output_bytes: self.unknown_output_bytes,
            ..LayoutOptions::default()
        }
    }
}
