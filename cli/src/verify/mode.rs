//! What `--mode` names: routes to a driver, and whether they lead through NNAPI's C functions.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::route::{RouteArg, RouteFilter};

/// A route, all of them, or the C functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A route, or all of them.
    Route(RouteFilter),
    /// Not a service, but a `libneuralnetworks.so`: over the other modes that are named, or over all.
    Ndk,
}

impl Mode {
    /// Whether this route is meant.
    pub(super) fn wants(self, route: RouteArg) -> bool {
        matches!(self, Mode::Route(filter) if filter.wants(route))
    }

    /// Whether this route is named, and not all of them.
    pub(super) fn names(self, route: RouteArg) -> bool {
        matches!(self, Mode::Route(filter) if filter.names(route))
    }
}

impl ValueEnum for Mode {
    fn value_variants<'a>() -> &'a [Self] {
        const fn named(route: RouteArg) -> Mode {
            Mode::Route(RouteFilter::of(route))
        }
        const MODES: [Mode; 7] = [
            named(RouteArg::Burst),
            named(RouteArg::Sync),
            named(RouteArg::Async),
            named(RouteArg::Fenced),
            named(RouteArg::InProcess),
            Mode::Route(RouteFilter::ALL),
            Mode::Ndk,
        ];
        &MODES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Mode::Route(filter) => filter.to_possible_value(),
            Mode::Ndk => Some(PossibleValue::new("ndk").help(
                "No service, but the C functions of a libneuralnetworks.so (--library), over the \
                 other modes that are named",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_of_routes_is_a_mode_and_so_are_the_c_functions() {
        for filter in RouteFilter::value_variants() {
            let name = filter.to_possible_value().unwrap();
            assert_eq!(Mode::from_str(name.get_name(), false), Ok(Mode::Route(*filter)));
        }
        assert_eq!(Mode::from_str("ndk", false), Ok(Mode::Ndk));
        assert!(!Mode::Ndk.wants(RouteArg::Burst) && !Mode::Ndk.names(RouteArg::Burst));
    }
}
