//! A prepared test over a route: executed as often as a suite wants, each result checked.

use std::io::Write;
use std::time::Duration;

use burst_hal::{ErrorStatus, ExecutionOptions, Fence, FenceState, Request, Route, TimePoint};

use crate::arguments::Arguments;
use crate::checks::{Expect, check, check_values};
use crate::interface::Interface;
use crate::outcome::{Done, LeftOut};
use crate::subject::{Subject, Target};
use crate::ways::{Ran, Way, check_timing, ended, gate};

/// A prepared test over a route, with memory for its arguments.
pub(crate) struct Case<'s> {
    subject: &'s Subject<'s>,
    arguments: Arguments,
    way: Way,
}

impl<'s> Case<'s> {
    /// Arguments in plain memory.
    pub(crate) fn new(
        target: Target<'_>,
        subject: &'s Subject<'s>,
        route: Route,
    ) -> Result<Self, String> {
        let arguments = Arguments::new(&subject.built, &**target.memory)?;
        Case::with_arguments(subject, arguments, route)
    }

    pub(crate) fn with_arguments(
        subject: &'s Subject<'s>,
        arguments: Arguments,
        route: Route,
    ) -> Result<Self, String> {
        Ok(Case { subject, arguments, way: Way::open(&subject.prepared, route)? })
    }

    /// The interface that leads to the device.
    pub(crate) fn interface(&self) -> Interface {
        self.subject.interface
    }

    /// Options that measure, where that can be asked for.
    fn measuring(&self) -> ExecutionOptions {
        let measure_timing = self.interface().has_deadlines();
        ExecutionOptions { measure_timing, ..ExecutionOptions::default() }
    }

    /// Executes without and with measuring; twice without where times cannot be asked for.
    pub(crate) fn both_timings(
        &mut self,
        expect: Expect,
        loop_timeout: Option<Duration>,
    ) -> Result<Done, String> {
        let mut done = Done::default();
        for measure_timing in [false, true] {
            let has_times = !measure_timing || self.interface().has_deadlines();
            let measure_timing = measure_timing && has_times;
            let options = ExecutionOptions { measure_timing, deadline: None, loop_timeout };
            done = done.and(self.once(expect, &options)?);
            if !has_times {
                done.left_out.push(LeftOut::TimesOfAnyDevice);
            }
        }
        Ok(done)
    }

    /// Executes once. Over fences, which need outputs of known sizes, INVALID_ARGUMENT takes the place of
    /// what cannot be asked for.
    pub(crate) fn once(
        &mut self,
        expect: Expect,
        options: &ExecutionOptions,
    ) -> Result<Done, String> {
        let (expect, left_out) = match (self.way.route(), expect) {
            (Route::Fenced, Expect::ValuesAndShapes | Expect::Insufficient) => {
                (Expect::InvalidArgument, None)
            }
            (Route::Fenced, Expect::Values) if self.has_zero_sized_output() => {
                (Expect::InvalidArgument, Some(LeftOut::ZeroSizedFenced))
            }
            _ => (expect, None),
        };
        let short = u32::from(expect == Expect::Insufficient);
        let request = self.arguments.request(short)?;
        let ran = self.way.execute(&request, options)?;
        check_timing(ran.result.timing, options.measure_timing)?;
        self.check_refusal(expect, &ran)?;
        let Subject { test, built, .. } = self.subject;
        check(test, built, expect, &ran.result, &self.arguments)?;
        self.arguments.check_untouched(built, short)?;
        Ok(Done { count: 1, left_out: left_out.into_iter().collect() })
    }

    /// Executes an invalid request; the device must refuse it at once and write nothing.
    pub(crate) fn wrong_request(
        &mut self,
        break_it: impl FnOnce(&mut Request),
    ) -> Result<(), String> {
        let mut request = self.arguments.request(0)?;
        break_it(&mut request);
        let options = self.measuring();
        let ran = self.way.execute(&request, &options)?;
        self.check_refusal(Expect::InvalidArgument, &ran)?;
        let Subject { test, built, .. } = self.subject;
        check(test, built, Expect::InvalidArgument, &ran.result, &self.arguments)
    }

    /// An argument that is wrong is said by the launch too.
    fn check_refusal(&self, expect: Expect, ran: &Ran) -> Result<(), String> {
        let tells = matches!(self.way.route(), Route::Asynchronous | Route::Fenced);
        if tells && expect == Expect::InvalidArgument && ran.refused.is_none() {
            let status = ran.result.status;
            return Err(format!("the launch takes it; status {status}, expected INVALID_ARGUMENT"));
        }
        Ok(())
    }

    fn has_zero_sized_output(&self) -> bool {
        self.subject.built.outputs.iter().any(Vec::is_empty)
    }

    /// Two executions in a chain behind a fence of ours: nothing begins before that is done, then both
    /// end well. A second one behind a fence that is done ends well too.
    pub(crate) fn chain(&mut self) -> Result<Done, String> {
        if self.has_zero_sized_output() {
            return Ok(Done { count: 0, left_out: vec![LeftOut::ZeroSizedFenced] });
        }
        let options = self.measuring();
        let request = self.arguments.request(0)?;
        let (fence, mut opener) = gate()?;
        let start = |way: &Way, fence: &Fence, what: &str| {
            let started = way.start_fenced(&request, vec![fence.clone()], &options);
            started.map_err(|failure| format!("{what}: {failure}"))
        };
        let first = start(&self.way, &fence, "behind a fence")?;
        let first_fence = first.fence.clone().ok_or("it ended before its fence was signalled")?;
        let second = start(&self.way, &first_fence, "behind the fence of another execution")?;
        if let Ok(info) = first.info.execution_info() {
            return Err(format!("the info says {} before the execution began", info.status));
        }
        if first_fence.state() != FenceState::Pending {
            return Err("a fence is signalled before its execution began".to_owned());
        }
        self.arguments.check_unwritten("before the fence was signalled")?;
        opener.write_all(&[1]).map_err(|error| format!("no byte for a fence: {error}"))?;
        ended(&second, &options).map_err(|what| format!("the second of a chain: {what}"))?;
        self.expect_ended_well(ended(&first, &options)?.status)?;
        let third = start(&self.way, &first_fence, "behind a fence that is done")?;
        self.expect_ended_well(ended(&third, &options)?.status)?;
        Ok(Done::of(3))
    }

    fn expect_ended_well(&self, status: ErrorStatus) -> Result<(), String> {
        if status != ErrorStatus::None {
            return Err(format!("status {status} in a chain"));
        }
        let Subject { test, built, .. } = self.subject;
        check_values(test, built, &self.arguments)
    }

    /// What is no fence, or has failed, is refused.
    pub(crate) fn wrong_fences(&mut self) -> Result<Done, String> {
        if self.has_zero_sized_output() {
            return Ok(Done { count: 0, left_out: vec![LeftOut::ZeroSizedFenced] });
        }
        let (failed, writer) = gate()?;
        drop(writer);
        let file = std::fs::File::open("/dev/null").map_err(|error| error.to_string())?;
        let none = Fence::from(std::os::fd::OwnedFd::from(file));
        for (fence, what, status) in [
            (failed, "a fence that has failed", self.interface().status_of_failed_fence()),
            (none, "what is no fence", ErrorStatus::InvalidArgument),
        ] {
            let request = self.arguments.request(0)?;
            let started =
                self.way.start_fenced(&request, vec![fence], &ExecutionOptions::default());
            match started {
                Err(failure) if failure.status == status => {}
                Err(failure) => return Err(format!("{what}: {failure}, expected {status}")),
                Ok(_) => return Err(format!("{what} is waited for")),
            }
        }
        Ok(Done::of(2))
    }

    /// Executes with a deadline.
    pub(crate) fn until(&mut self, deadline: TimePoint, expect: Expect) -> Result<Done, String> {
        let options = ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() };
        self.once(expect, &options)
    }
}
