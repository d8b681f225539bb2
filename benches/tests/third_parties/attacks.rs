//! The comparison of an honest client alone and beside attacks: what it reports.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::Command;

use serde_json::Value;

burst_testing::tests![
    an_honest_client_is_measured_alone_and_beside_an_attack(),
    an_attack_that_is_none_is_named_with_those_that_are(),
];

fn an_honest_client_is_measured_alone_and_beside_an_attack() {
    let output = Command::new(env!("CARGO_BIN_EXE_benches"))
        .args(["attacks", "--only", "flipped-events", "--frames", "50", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let attacks = report["attacks"].as_array().unwrap();
    assert_eq!((attacks.len(), attacks[0]["attack"].as_str()), (1, Some("flipped-events")));
    for when in ["alone", "beside"] {
        let seen = &attacks[0][when];
        assert!(seen["frames"].as_u64() >= Some(50), "{when}: {seen}");
        assert_eq!((seen["wrong"].as_u64(), seen["failed"].as_u64()), (Some(0), Some(0)), "{seen}");
        let [p50, p99, longest] =
            ["p50_us", "p99_us", "longest_us"].map(|name| seen[name].as_u64().unwrap());
        assert!(0 < p50 && p50 <= p99 && p99 <= longest, "{when}: {seen}");
    }
    assert!(attacks[0]["failure"].is_null());
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
}

fn an_attack_that_is_none_is_named_with_those_that_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_benches"))
        .args(["attacks", "--only", "earthquake"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for part in ["earthquake", "flipped-events", "silent-strangers"] {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
}
