//! Android's conformance vectors in this process: every test, in every suite it belongs to.

use std::collections::BTreeMap;

use burst_driver::CpuDevice;
use burst_tests::shared;
use burst_verify::{Mode, Suite, open, run_suite, specs};

/// Operations to look at alone, separated by commas; all when it is not set. For people at work:
/// `VTS_OP=CONV_2D cargo test -p burst-tests --test conformance`.
fn wanted() -> Option<Vec<String>> {
    let ops = std::env::var("VTS_OP").ok()?;
    Some(ops.split(',').map(str::to_owned).collect())
}

#[test]
fn every_vector_holds_in_this_process() {
    let Some(folder) = shared("every_vector_holds_in_this_process", "vts") else { return };
    let wanted = wanted();
    let device = CpuDevice::default();
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut tests, mut executions) = (0, 0);
    for spec in specs(&folder).unwrap() {
        let vectors = open(&spec).unwrap();
        for test in &vectors.tests {
            let ops: Vec<&str> = test.main.operations.iter().map(|op| &*op.r#type).collect();
            if wanted.as_ref().is_some_and(|w| !ops.iter().any(|op| w.iter().any(|x| x == op))) {
                continue;
            }
            tests += 1;
            for suite in Suite::of(test) {
                match run_suite(&device, &vectors, test, suite, Mode::Sync) {
                    Ok(count) => executions += count,
                    Err(what) => failures
                        .entry(spec.name.clone())
                        .or_default()
                        .push(format!("{} {suite}: {what}", test.name)),
                }
            }
        }
    }
    let failed: usize = failures.values().map(Vec::len).sum();
    for (spec, what) in &failures {
        println!("{spec}: {} failures", what.len());
        what.iter().take(3).for_each(|what| println!("    {what}"));
    }
    println!("{tests} tests, {executions} executions, {failed} failures");
    assert_eq!(failed, 0, "of {tests} tests");
}
