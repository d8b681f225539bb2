use super::super::agreement::Agreement;
use super::super::profile::{OperationFigures, OperationRow, Roofs};
use super::super::report::{Copies, Report, ThreadGain};
use super::*;
use crate::engine::{Quantiles, Spread};

const SPREAD: Spread = Spread { median: 1.125, min: 1.0, max: 1.25 };

fn path(name: &str, threads: u32) -> PathReport {
    PathReport {
        path: name.to_owned(),
        threads,
        executions: 1000,
        prepare_us: 900.0,
        first_us: 300.0,
        first_to_p50: 3.0,
        latency_us: Quantiles { p50: 100.0, p90: 110.0, p99: 150.0, p999: 200.0, max: 900.0 },
        transport_us: None,
        ratio_to_in_process: Some(SPREAD),
        rounds_p50_us: vec![100.0; 5],
        memory_kib: Some(20 << 10),
        outputs: Agreement { equal: true, largest: 0.0, relative: 0.0 },
        curve: vec![(0.0, 90e3), (0.5, 100e3), (0.99, 150e3)],
    }
}

/// One of two convolutions, the second of which does more for each byte.
fn operation(index: usize) -> OperationFigures {
    OperationFigures {
        index,
        operation: "CONV_2D".to_owned(),
        kernel: None,
        output: Some("1x8x8x16".to_owned()),
        us: 44.0,
        share: 0.44,
        macs: Some(500_000 * (index as u64 + 1)),
        gops_per_s: Some(22.8),
        of_peak: Some(0.25),
        bytes: Some(25_000),
        gb_per_s: Some(0.57),
        of_memory: Some(0.0285),
    }
}

fn model(name: &str) -> ModelReport {
    ModelReport {
        model: name.to_owned(),
        part: None,
        operations: 31,
        input_bytes: 10,
        output_bytes: 20,
        import_us: 1500.0,
        paths: vec![path(paths::IN_PROCESS, 1), path(paths::BURST, 1), path("<i>", 2)],
        threads: vec![ThreadGain {
            path: paths::IN_PROCESS.to_owned(),
            threads: 2,
            ratio_to_one: Spread { median: 0.6, min: 0.5, max: 0.7 },
        }],
        copies: Copies { inputs_us: Some(3.25), inputs_share: Some(0.0325), ..Copies::default() },
        profile: Some(vec![OperationRow {
            operation: "CONV_2D".to_owned(),
            kernel: None,
            count: 15,
            us: 88.0,
            share: 0.88,
            macs: Some(1_000_000),
            gmacs_per_s: Some(11.4),
            of_peak: Some(0.25),
            bytes: Some(50_000),
        }]),
        profile_operations: Some((0..2).map(operation).collect()),
        roofs: Some(Roofs {
            float_gmacs_per_s: 45.6,
            byte_gmacs_per_s: 182.0,
            memory_gb_per_s: 20.0,
        }),
        profile_beside_us: Some(90.0),
    }
}

fn report(wait: &str, models: Vec<ModelReport>) -> Report {
    let found = ModelsReport { wait: wait.to_owned(), models, client_memory_kib: Some(30 << 10) };
    Report { machine: Machine::detect(), rounds: 5, found }
}

#[test]
fn a_page_draws_each_model_and_needs_no_other_file() {
    let report = report("adaptive", vec![model("one"), model("<two>")]);
    let page = report.page().unwrap();
    assert_eq!(page.matches("<svg").count(), 4, "times and roofs of each model");
    assert!(!page.contains("<two>") && !page.contains("<i>"), "names are escaped");
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let seen = [
        "1.125 (1.000 - 1.250)",
        "0.60 (0.50 - 0.70)",
        "3.25 us, 3.25 %",
        "CONV_2D",
        "88.0 %",
        ">25 %<",
        "91 GOP/s of floats",
        "1x8x8x16",
        ">22.8<",
    ];
    for text in seen {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_text_has_a_row_per_path_and_one_per_model() {
    let report = report("spin", vec![model("one"), model("two")]);
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("│ in-process ").count(), 2, "a row per path: {text}");
    assert!(text.contains("│ two   ┆         100 us ┆    100 us ┆ 1.125"), "a summary: {text}");
    assert!(text.contains("in-process, 2 threads : 1 thread = 0.60 (0.50 - 0.70)"), "{text}");
    assert!(text.contains("copying the inputs: 3.25 us, 3.25 % of p50"), "{text}");
    assert!(text.contains("reference"), "{text}");
}

#[test]
fn what_was_left_out_is_said_and_where_nothing_was_that_too() {
    let mut report = report("adaptive", vec![model("one"), model("two")]);
    let nothing = "Nothing: every path had a trial in each of 5 rounds.";
    assert!(report.page().unwrap().contains(nothing));
    report.found.models[1].part = Some("without its last operator".to_owned());
    report.found.models[1].paths[1].rounds_p50_us.truncate(1);
    report.found.models[0].paths.remove(2);
    let page = report.page().unwrap();
    assert!(!page.contains(nothing));
    for line in [
        "two: only a part of it ran, without its last operator",
        "two: burst, 1 thread had a trial in 1 of 5 rounds",
    ] {
        assert!(page.contains(&format!("<li>{line}")), "{line}: {page}");
    }
}

#[test]
fn a_page_says_how_much_memory_each_process_had() {
    let mut report = report("adaptive", vec![model("one")]);
    let page = report.page().unwrap();
    assert!(page.contains("<th>most memory") && page.contains("<td>20.0 MiB"), "{page}");
    assert!(page.contains("This process had 30.0 MiB of memory at most"), "{page}");
    report.found.client_memory_kib = None;
    report.found.models[0].paths.iter_mut().for_each(|path| path.memory_kib = None);
    let page = report.page().unwrap();
    assert!(!page.contains("MiB"), "nothing is made up: {page}");
}

#[test]
fn a_profile_has_its_sum_and_says_where_that_is_far_from_what_executions_took() {
    let mut model = model("one");
    let rows = model.profile.clone().unwrap();
    assert!(
        profile_table(&rows).markdown().contains("| sum"),
        "{}",
        profile_table(&rows).markdown()
    );
    let lines = profile_lines(&model, &rows);
    assert!(lines.len() == 1 && lines[0].contains("at best"), "88 us beside 100 us: {lines:?}");
    // Of the same rounds: the clocks between operations cost too much, or something else did.
    model.profile_beside_us = Some(30.0);
    let lines = profile_lines(&model, &rows);
    assert!(lines[1].contains("88.0 us") && lines[1].contains("30.0 us"), "{lines:?}");
    // Of other rounds: the machine was another one by then.
    model.profile_beside_us = Some(88.0);
    model.paths[0].latency_us.p50 = 30.0;
    let lines = profile_lines(&model, &rows);
    assert!(lines[1].contains("88.0 us") && lines[1].contains("30.0 us"), "{lines:?}");
    assert_eq!(lines.len(), 2, "said once: {lines:?}");
}

#[test]
fn operations_lie_below_the_roofs_of_the_machine() {
    let model = model("one");
    let (profile, roofs) = (model.profile.unwrap(), model.roofs.unwrap());
    let drawing = roofline(&profile, &model.profile_operations.unwrap(), &roofs);
    let [floats, bytes, one, other] = &drawing.lines[..] else { panic!("{drawing:?}") };
    assert_eq!((one.name.as_str(), other.name.as_str()), ("CONV_2D, reference", ""));
    assert_eq!(one.colour, other.colour, "of one kind");
    let (x, y) = one.points[0];
    assert!((x - 40_f64.log10()).abs() < 1e-9 && (y - 22.8e9).abs() < 1.0, "{x} {y}");
    assert!((other.points[0].0 - 80_f64.log10()).abs() < 1e-9, "{other:?}");
    for (roof, peak) in [(floats, 91.2e9), (bytes, 364e9)] {
        let [start, ridge, end] = roof.points[..] else { panic!("{roof:?}") };
        assert!(start.0 < x && x < end.0, "the roof spans all operations");
        assert!((ridge.1, end.1) == (peak, peak) && start.1 < peak, "a slope, then flat: {roof:?}");
        assert!((start.1 / 10_f64.powf(start.0) - 20e9).abs() < 1e3, "the slope is memory's");
    }
}
