//! The parameters of a burst that a client asks for besides its queues.

use burst_hal::ExecutionPreference;
use burst_wire::control::WaitStyle;
use burst_wire::{Features, PIPELINE_DEPTH_MAX};
use fmq::Wait;

use crate::ServerError;
use crate::admission::{Limit, LimitMeters};

/// Parameters of a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BurstParams {
    /// Additions to HAL 1.2 to use.
    pub(crate) features: Features,
    /// How the service is to wait for requests.
    pub(crate) wait: WaitStyle,
    /// Requests that may be under way at once.
    pub(crate) depth: u16,
}

impl BurstParams {
    /// Whether a client that has negotiated these additions may ask for this.
    pub(crate) fn check(
        &self,
        negotiated: Features,
        meters: &LimitMeters,
    ) -> Result<(), ServerError> {
        let BurstParams { features, depth, .. } = *self;
        let pipelined = features.contains(Features::PIPELINING);
        if !negotiated.contains(features) || depth == 0 || (depth > 1 && !pipelined) {
            return Err(ServerError::NotNegotiated);
        }
        Ok(meters.within(Limit::PipelineDepth, depth.into(), PIPELINE_DEPTH_MAX.into())?)
    }

    /// How the service waits for the requests of a model with this preference.
    pub(super) fn wait(&self, preference: ExecutionPreference, default: Wait) -> Wait {
        asked_for(self.wait, preference, default)
    }
}

/// How the service waits for requests. For a model that is to save energy it never polls, whatever the
/// client asks for.
fn asked_for(style: WaitStyle, preference: ExecutionPreference, default: Wait) -> Wait {
    match style {
        _ if preference == ExecutionPreference::LowPower => Wait::Sleep,
        WaitStyle::Spin => Wait::Spin,
        WaitStyle::Sleep => Wait::Sleep,
        WaitStyle::Adaptive => Wait::Adaptive { budget_ns: None },
        WaitStyle::Service | WaitStyle::Other(_) => default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_saves_energy_is_not_polled_for() {
        let (fast, low) = (ExecutionPreference::FastSingleAnswer, ExecutionPreference::LowPower);
        let adaptive = Wait::Adaptive { budget_ns: None };
        for (style, preference, want) in [
            (WaitStyle::Service, fast, Wait::Spin),
            (WaitStyle::Service, low, Wait::Sleep),
            (WaitStyle::Adaptive, fast, adaptive),
            (WaitStyle::Adaptive, low, Wait::Sleep),
            (WaitStyle::Spin, fast, Wait::Spin),
            (WaitStyle::Spin, low, Wait::Sleep),
            (WaitStyle::Sleep, fast, Wait::Sleep),
        ] {
            assert_eq!(asked_for(style, preference, Wait::Spin), want, "{style:?} {preference:?}");
        }
    }
}
