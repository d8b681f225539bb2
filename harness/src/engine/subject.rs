//! What is measured: a subject, by trials.

use crate::error::HarnessError;

/// How long a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Round trips or executions that come before those that count.
    pub warm_up: u32,
    /// Those that count.
    pub counted: u32,
}

/// What one trial found, as far as the engine needs it.
pub trait Trial {
    /// The median of what was counted, in nanoseconds; `None` where nothing was.
    fn p50_ns(&self) -> Option<f64>;

    /// How long the loop of [`quiet`](super::quiet) took at each process of the subject that timed it,
    /// in nanoseconds: the least and the most. `None` where none did.
    fn compute_ns(&self) -> Option<[f64; 2]> {
        None
    }
}

/// What is compared with others: a peer of the transport in one case, a model over one path.
pub trait Subject {
    /// What one trial finds.
    type Trial: Trial;

    /// What an error message says of the subject before it says what failed.
    fn context(&self) -> String;

    /// Sets everything up, warms up, measures, and gives everything back, so that nothing of it polls
    /// or holds caches while others have their trials.
    ///
    /// # Errors
    /// Whatever stops it.
    fn trial(&mut self, length: Length) -> Result<Self::Trial, HarnessError>;
}

impl<S: Subject + ?Sized> Subject for Box<S> {
    type Trial = S::Trial;

    fn context(&self) -> String {
        (**self).context()
    }

    fn trial(&mut self, length: Length) -> Result<S::Trial, HarnessError> {
        (**self).trial(length)
    }
}
