//! Priorities and deadlines of small models: `DeadlineTest`.

use std::time::Duration;

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, PrepareOptions, Priority, Route, TimePoint,
};

use super::generated::{expect_failure_without_more, expect_right, way};
use super::samples::all_supported;
use super::{Check, Checked, Verdict, refused};
use crate::checks::is_missed_deadline;

use Route::{Asynchronous, Burst, Fenced, Synchronous};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "DeadlineTest/PrepareLow", run: |device| priority(device, Priority::Low) },
    Check { name: "DeadlineTest/PrepareHigh", run: |device| priority(device, Priority::High) },
    Check { name: "DeadlineTest/PrepareNow", run: |device| prepare(device, Until::Now) },
    Check { name: "DeadlineTest/PrepareShort", run: |device| prepare(device, Until::Short) },
    Check {
        name: "DeadlineTest/PrepareUnlimited",
        run: |device| prepare(device, Until::Unlimited),
    },
    Check { name: "DeadlineTest/SyncNow", run: |device| execute(device, Synchronous, Until::Now) },
    Check {
        name: "DeadlineTest/SyncShort",
        run: |device| execute(device, Synchronous, Until::Short),
    },
    Check {
        name: "DeadlineTest/SyncUnlimited",
        run: |device| execute(device, Synchronous, Until::Unlimited),
    },
    Check {
        name: "DeadlineTest/AsyncNow",
        run: |device| execute(device, Asynchronous, Until::Now),
    },
    Check {
        name: "DeadlineTest/AsyncShort",
        run: |device| execute(device, Asynchronous, Until::Short),
    },
    Check {
        name: "DeadlineTest/AsyncUnlimited",
        run: |device| execute(device, Asynchronous, Until::Unlimited),
    },
    Check { name: "DeadlineTest/FencedNow", run: |device| execute(device, Fenced, Until::Now) },
    Check { name: "DeadlineTest/FencedShort", run: |device| execute(device, Fenced, Until::Short) },
    Check {
        name: "DeadlineTest/FencedUnlimited",
        run: |device| execute(device, Fenced, Until::Unlimited),
    },
    Check {
        name: "DeadlineTest/BurstUnlimited",
        run: |device| execute(device, Burst, Until::Unlimited),
    },
];

/// How often what may or may not be in time is tried.
const ROUNDS: usize = 4;

/// A deadline of the original suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Now,
    /// One that some meet and some miss.
    Short,
    Unlimited,
}

impl Until {
    /// The deadline, counted from now.
    fn time_point(self) -> TimePoint {
        match self {
            Until::Now => TimePoint::now(),
            Until::Short => TimePoint::after(Duration::from_millis(5)),
            Until::Unlimited => TimePoint { nanos: u64::MAX },
        }
    }

    fn may_be_missed(self) -> bool {
        self != Until::Unlimited
    }
}

/// A priority that is not the default, without a deadline.
fn priority(device: &dyn Device, priority: Priority) -> Checked {
    for sample in all_supported!(device) {
        let options = PrepareOptions { priority, ..PrepareOptions::default() };
        let model = device.prepare_model(&sample.model, &options).map_err(refused(sample.name))?;
        let mut way = way!(&model, Synchronous, sample);
        let laid = sample.laid(0);
        let ran = way.execute(&laid.request, &ExecutionOptions::default())?;
        expect_right(&sample, &laid, &ran, false)?;
    }
    Ok(Verdict::Passed)
}

/// A model that was prepared in time computes as any other.
fn prepare(device: &dyn Device, until: Until) -> Checked {
    for sample in all_supported!(device) {
        for _ in 0..ROUNDS {
            let options =
                PrepareOptions { deadline: Some(until.time_point()), ..PrepareOptions::default() };
            let model = match device.prepare_model(&sample.model, &options) {
                Ok(model) => model,
                Err(late) if until.may_be_missed() && is_missed_deadline(late.status) => continue,
                Err(failure) => return Err(format!("{}, {until:?}: {failure}", sample.name)),
            };
            let mut way = way!(&model, Synchronous, sample);
            let laid = sample.laid(0);
            let ran = way.execute(&laid.request, &ExecutionOptions::default())?;
            expect_right(&sample, &laid, &ran, false)?;
        }
    }
    Ok(Verdict::Passed)
}

/// Values in time, or a missed deadline, of which the launch says nothing.
fn execute(device: &dyn Device, route: Route, until: Until) -> Checked {
    for sample in all_supported!(device) {
        let model = sample.prepare(device)?;
        let mut way = way!(&model, route, sample);
        for _ in 0..ROUNDS {
            let laid = sample.laid(0);
            let deadline = Some(until.time_point());
            let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
            let ran = way.execute(&laid.request, &options)?;
            if let Some(status) = ran.refused.filter(|_| route == Asynchronous) {
                return Err(format!("{}, {until:?}: the launch says {status}", sample.name));
            }
            if until.may_be_missed() && ran.result.status != ErrorStatus::None {
                // What it has written by then is nobody's business.
                expect_failure_without_more(&sample, &ran, is_missed_deadline)?;
            } else {
                expect_right(&sample, &laid, &ran, false)?;
            }
        }
    }
    Ok(Verdict::Passed)
}
