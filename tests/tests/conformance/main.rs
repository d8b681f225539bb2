//! The rows of Android's functional tests that ask nothing but a device, each written once
//! (`burst_verify::functional`) and run in two places: on the CPU device in this process, and on the same one
//! behind a service, as its client sees it. `docs/CONFORMANCE.md` says which row stands for what.
//!
//! `in_process::NAME` and `through_a_service::NAME` are the tests; rows that a device need not answer apply to
//! this one all the same.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

#[path = "../burst_support/mod.rs"]
mod burst_support;
#[path = "../service_support/mod.rs"]
mod service_support;

use std::process::ExitCode;
use std::sync::Arc;

use burst_driver::{CacheKey, CpuDevice};
use burst_hal::Device;
use burst_launch::Launcher;
use burst_server::ServiceOptions;
use burst_testing::{Case, run_cases};
use burst_verify::functional::{Check, Verdict, checks};

use burst_support::wait_until;
use service_support::Shared;

fn main() -> ExitCode {
    let in_process =
        checks().map(|check| Case::new(format!("in_process::{}", check.name), move || here(check)));
    let remote = checks()
        .map(|check| Case::new(format!("through_a_service::{}", check.name), move || there(check)));
    run_cases(in_process.chain(remote).collect())
}

/// Keeps compilations, too.
fn device() -> Arc<dyn Device> {
    Arc::new(CpuDevice::default().with_cache_key(CacheKey::new([9; CacheKey::BYTES])))
}

#[track_caller]
fn expect_passed(check: &Check, device: &dyn Device) {
    let verdict = (check.run)(device).unwrap_or_else(|wrong| panic!("{}: {wrong}", check.name));
    assert_eq!(verdict, Verdict::Passed, "{} applies to this device", check.name);
}

/// In a program that has the driver in it, launches are the launcher's.
fn here(check: &Check) {
    expect_passed(check, &*Launcher::default().wrap(device()));
}

/// Whatever came of it, nothing of the client is left in the service.
fn there(check: &Check) {
    let mut options = ServiceOptions::default();
    options.limits.setup_rate = 0; // broken models come by the hundred
    let service = Shared::start(device(), options);
    let client = service.connect().unwrap();
    let remote = client.devices().unwrap().remove(0);
    expect_passed(check, &remote);
    drop((remote, client));
    wait_until("the end of the client", || service.metric("burst_in_use{limit=\"clients\"}") == 0);
    for resource in ["memory_bytes", "address_space_bytes", "descriptors", "threads"] {
        let used = || service.metric(&format!("burst_service_used{{resource=\"{resource}\"}}"));
        wait_until(&format!("{resource} given back"), || used() == 0);
    }
}
