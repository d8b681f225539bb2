//! A client's prepared model, as every kind of execution needs it.

use std::sync::Arc;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs, ValidationError};
use burst_hal::{ExecutionPreference, PrepareOptions, PreparedModel, Request};

use crate::admission::Charge;
use crate::metrics::ModelMeter;

/// A prepared model of a client, and what it asks of a request. Its bursts share it and keep it
/// alive after the client has released it.
pub(crate) struct PreparedEntry {
    pub(crate) model: Arc<dyn PreparedModel>,
    pub(crate) preference: ExecutionPreference,
    pub(crate) meter: ModelMeter,
    rules: RequestRules,
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
        let preference = options.preference;
        PreparedEntry { model: prepared, preference, meter, rules, _charge: charge }
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

impl std::fmt::Debug for PreparedEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedEntry")
            .field("preference", &self.preference)
            .finish_non_exhaustive()
    }
}
