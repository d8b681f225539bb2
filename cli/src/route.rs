//! How requests reach a driver, as it is said on the command line.

use burst_hal::Route;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// How requests reach the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum RouteArg {
    /// A driver process, one packet through shared memory each way.
    #[default]
    Burst,
    /// A driver process, one message over the control socket each way.
    Sync,
    /// A driver process, one message over the control socket there, and its result when it comes.
    Async,
    /// A driver process, one message over the control socket there, and a fence that says when it is done.
    Fenced,
    /// No driver process: the CPU device in this one.
    InProcess,
}

impl RouteArg {
    /// What is typed, and what reports say.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RouteArg::Burst | RouteArg::Sync | RouteArg::Async | RouteArg::Fenced => {
                self.route().name()
            }
            RouteArg::InProcess => "in-process",
        }
    }

    /// How requests travel; to a device in this process through a burst of its own.
    pub(crate) fn route(self) -> Route {
        match self {
            RouteArg::Burst | RouteArg::InProcess => Route::Burst,
            RouteArg::Sync => Route::Synchronous,
            RouteArg::Async => Route::Asynchronous,
            RouteArg::Fenced => Route::Fenced,
        }
    }
}

/// A route, or `all` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteFilter(Option<RouteArg>);

impl RouteFilter {
    /// Each of them.
    pub(crate) const ALL: Self = RouteFilter(None);

    /// This one.
    pub(crate) const fn of(route: RouteArg) -> Self {
        RouteFilter(Some(route))
    }

    /// Whether this route is meant.
    pub(crate) fn wants(self, route: RouteArg) -> bool {
        self.0.is_none_or(|wanted| wanted == route)
    }

    /// Whether this route is named, and not all of them.
    pub(crate) fn names(self, route: RouteArg) -> bool {
        self.0 == Some(route)
    }
}

impl ValueEnum for RouteFilter {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            RouteFilter(Some(RouteArg::Burst)),
            RouteFilter(Some(RouteArg::Sync)),
            RouteFilter(Some(RouteArg::Async)),
            RouteFilter(Some(RouteArg::Fenced)),
            RouteFilter(Some(RouteArg::InProcess)),
            RouteFilter(None),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self.0 {
            Some(route) => route.to_possible_value(),
            None => Some(PossibleValue::new("all").help("Each of them")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_reports_say() {
        for route in RouteArg::value_variants() {
            let typed = route.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), route.name());
            assert_eq!(RouteArg::from_str(route.name(), false), Ok(*route));
        }
    }

    #[test]
    fn a_filter_takes_every_route_by_name_and_all_of_them() {
        let routes = RouteArg::value_variants();
        for named in routes {
            let filter = RouteFilter::from_str(named.name(), false).unwrap();
            for route in routes {
                assert_eq!(filter.wants(*route), route == named);
                assert_eq!(filter.names(*route), route == named);
            }
        }
        let all = RouteFilter::from_str("all", false).unwrap();
        assert!(routes.iter().all(|route| all.wants(*route) && !all.names(*route)));
    }
}
