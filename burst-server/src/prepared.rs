//! A client's prepared model, as every kind of execution needs it.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs, ValidationError};
use burst_hal::{
    Caller, ErrorStatus, ExecutionPreference, Pace, PrepareOptions, PreparedModel, Priority,
    Request, TimePoint,
};

use crate::admission::Charge;
use crate::metrics::ModelMeter;

/// A prepared model of a client, and what it asks of a request. Its bursts share it and keep it
/// alive after the client has released it.
pub(crate) struct PreparedEntry {
    pub(crate) model: Arc<dyn PreparedModel>,
    pub(crate) preference: ExecutionPreference,
    pub(crate) priority: Priority,
    pub(crate) meter: ModelMeter,
    rules: RequestRules,
    /// Of a model that does not note its own: nothing is known.
    unknown_pace: Pace,
    _charge: Charge,
}

impl PreparedEntry {
    pub(crate) fn new(
        prepared: Arc<dyn PreparedModel>,
        options: &PrepareOptions,
        rules: RequestRules,
        meter: ModelMeter,
        charge: Charge,
    ) -> Self {
        let PrepareOptions { preference, priority, .. } = *options;
        let (model, unknown_pace) = (prepared, Pace::default());
        PreparedEntry { model, preference, priority, meter, rules, unknown_pace, _charge: charge }
    }

    fn pace(&self) -> &Pace {
        self.model.pace().unwrap_or(&self.unknown_pace)
    }

    /// The status of a request that is refused at once, as it came with so little time left; `None` for
    /// one that may wait for its turn.
    pub(crate) fn refusal(&self, left: Option<Duration>) -> Option<ErrorStatus> {
        self.pace().refusal(left?)
    }

    /// The status of a request whose deadline passed before its end; so much time was left when it came.
    pub(crate) fn missed(&self, left: Option<Duration>) -> ErrorStatus {
        self.pace().missed(left.unwrap_or(Duration::MAX))
    }

    /// What a device says of a missed deadline, it says of the time that was left when the request had
    /// got its turn. Its client is told what holds for the time when it came.
    pub(crate) fn judge(&self, status: ErrorStatus, left: Option<Duration>) -> ErrorStatus {
        match status {
            ErrorStatus::MissedDeadlinePersistent if self.model.pace().is_some() => {
                self.missed(left)
            }
            other => other,
        }
    }

    /// The caller as its device executes for it: the model's account pays.
    pub(crate) fn paying(&self, caller: Caller) -> Caller {
        caller.with_account(self.meter.account())
    }

    /// What it asks of a request.
    pub(crate) fn rules(&self) -> &RequestRules {
        &self.rules
    }

    /// The name of its device.
    pub(crate) fn device(&self) -> &str {
        self.meter.device()
    }

    /// Whether a request is legal for the model; one that is not must not reach the device.
    pub(crate) fn check(&self, request: &Request) -> Result<(), ValidationError> {
        self.rules.check(request, UnspecifiedOutputs::Allowed)
    }

    /// The same for a fenced execution, whose outputs all have to have a known size.
    pub(crate) fn check_fenced(&self, request: &Request) -> Result<(), ValidationError> {
        self.rules.check(request, UnspecifiedOutputs::Refused)
    }
}

/// The time that is left until a deadline.
pub(crate) fn left_until(deadline: Option<TimePoint>) -> Option<Duration> {
    deadline.map(|deadline| deadline.since(TimePoint::now()))
}

impl std::fmt::Debug for PreparedEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedEntry")
            .field("preference", &self.preference)
            .finish_non_exhaustive()
    }
}
