//! Models that Android's own fuzzer arrived at, valid and broken ones, against the CPU driver.
//!
//! There is no right answer to them but this: the driver refuses or answers, and keeps the rules of
//! the HAL while it does. Needs `../shared`. Each model is filled in five ways: with random bytes of
//! lengths that have nothing to do with its shapes, with fitting ones, and with those of three random kinds. The
//! driver has it in this process, and in a service within limits, which is watched from here.

#![allow(clippy::unwrap_used, reason = "a test panics")]

mod seeds;

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use burst_client::Client;
use burst_driver::CpuDevice;
use burst_hal::validate::{validate_model, validate_result};
use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, Failure, HalVersion, PrepareOptions, Route, TimePoint,
};
use burst_testing::shared;
use burst_tests::attacks::{Confinement, Service};
use burst_tests::routes::execute_over;

use self::seeds::{Case, Corpus, Fill, random};

burst_testing::tests![
    models_of_androids_fuzzer_are_refused_or_run_and_break_nothing(&shared("fuzz-corpus")?),
    a_service_stands_the_models_of_androids_fuzzer(&shared("fuzz-corpus")?),
    random_bytes_are_those_of_the_converter(),
    a_case_that_hangs_or_panics_fails_by_its_name(),
];

/// Models of the corpus.
const MODELS: usize = 401;
/// Longest execution: some models ask for work without end.
const EXECUTION: Duration = Duration::from_millis(300);
/// What no case may take: some hundred times what the slowest one does.
const HANG: Duration = Duration::from_secs(60);
/// Memory of the service at its height: far less than the terabytes that some shapes say.
const MEMORY_MAX: u64 = 5 << 29;

/// How far cases come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Illegal,
    NotPrepared,
    Failed,
    Ran,
}

fn models_of_androids_fuzzer_are_refused_or_run_and_break_nothing(folder: &Path) {
    all_cases(Corpus::open(folder), CpuDevice::default());
}

fn a_service_stands_the_models_of_androids_fuzzer(folder: &Path) {
    // As fast as it goes: what is looked at here is not who may call how often.
    let mut service = Service::start(Confinement::MEMORY, &["--setup-rate", "0"]).unwrap();
    let client = Client::connect(service.socket()).unwrap();
    all_cases(Corpus::open(folder), client.device("cpu").unwrap());
    drop(client);
    assert_eq!(service.end(), None, "it lives");
    let most = service.size("VmHWM").unwrap();
    println!("at most {} MiB of memory", most >> 20);
    assert!(most < MEMORY_MAX, "{most} bytes of memory");
    let all_is_given_back = service.wait_until("the end of its client", HANG, |now| {
        now.value("burst_service_used{resource=\"memory_bytes\"}") == 0
            && now.in_use("clients") == 0
    });
    all_is_given_back.unwrap();
}

/// Runs every case, each bounded in time.
fn all_cases(corpus: Corpus, device: impl Device + 'static) {
    assert_eq!(corpus.models(), MODELS);
    let cases = (0..MODELS).flat_map(|model| Fill::ALL.map(|fill| (model, fill)));
    let mut counts = [0; 4];
    within_time(
        cases,
        HANG,
        move |(model, fill)| {
            // Each route has models of every fill.
            let route = Route::ALL[model % Route::ALL.len()];
            one(&device, &corpus.case(model, fill), route)
        },
        |reached| counts[reached as usize] += 1,
    )
    .unwrap_or_else(|failed| panic!("{failed}"));
    let [illegal, unprepared, failed, ran] = counts;
    println!("{illegal} illegal, {unprepared} not prepared, {failed} failed, {ran} ran");
    assert_eq!(counts.iter().sum::<usize>(), MODELS * Fill::ALL.len());
    assert!(ran > 0 && illegal > 0, "the corpus has both");
}

/// Runs cases one after the other, each on a thread that is left behind where it takes longer than `hang`.
///
/// # Errors
/// A case panics, or takes longer: with what it is.
fn within_time<C: Copy + std::fmt::Debug + Send + 'static, R: Send + 'static>(
    cases: impl Iterator<Item = C> + Send + 'static,
    hang: Duration,
    run: impl Fn(C) -> R + Send + 'static,
    mut take: impl FnMut(R),
) -> Result<(), String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for case in cases {
            // Nobody listens any more once a case has failed.
            let _ = tell.send(Step::Begins(case));
            let _ = tell.send(Step::Ends(run(case)));
        }
        let _ = tell.send(Step::Over);
    });
    let mut at = None;
    loop {
        match told.recv_timeout(hang) {
            Ok(Step::Begins(case)) => at = Some(case),
            Ok(Step::Ends(result)) => take(result),
            Ok(Step::Over) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(format!("{at:?} panics")),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("{at:?} takes longer than {hang:?}"));
            }
        }
    }
}

/// What a thread with cases does.
enum Step<C, R> {
    Begins(C),
    Ends(R),
    Over,
}

fn a_case_that_hangs_or_panics_fails_by_its_name() {
    let fails = |hang, run: fn(u32)| within_time(0..3, hang, run, |()| {}).unwrap_err();
    let hanging = fails(Duration::from_secs(1), |case| {
        if case == 1 {
            std::thread::sleep(HANG * 60);
        }
    });
    assert_eq!(hanging, "Some(1) takes longer than 1s");
    let panicking = fails(HANG, |case| {
        if case == 2 {
            // Without a word on the terminal: whoever looks there for a failure is not to find this one.
            std::panic::resume_unwind(Box::new("a defect"));
        }
    });
    assert_eq!(panicking, "Some(2) panics");
}

/// One case, over one route.
fn one(device: &dyn Device, case: &Case<'_>, route: Route) -> Reached {
    let name = format!("{} {route}", case.name());
    let model = case.model();
    let legal = validate_model(&model, HalVersion::V1_3).is_ok();
    let supported = device.supported_operations(&model);
    let prepared = device.prepare_model(&model, &PrepareOptions::default());
    let is_invalid = |refusal: Option<&Failure>| {
        refusal.is_some_and(|failure| failure.status == ErrorStatus::InvalidArgument)
    };
    let invalid = is_invalid(supported.as_ref().err());
    assert!(legal || invalid, "{name}: an illegal model");
    // What is illegal is so to both; what cannot be prepared has an operation that the query says is
    // not supported, and what can be has none.
    assert_eq!(invalid, is_invalid(prepared.as_ref().err()), "{name}: illegal to one");
    let all = supported.is_ok_and(|supported| supported.into_iter().all(|is| is));
    assert_eq!(all, prepared.is_ok(), "{name}: supported and prepared differ");
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(_) if invalid => return Reached::Illegal,
        Err(_) => return Reached::NotPrepared,
    };
    let request = case.request(&model);
    let options = ExecutionOptions {
        measure_timing: true,
        deadline: Some(TimePoint::after(EXECUTION)),
        loop_timeout: None,
    };
    let result = execute_over(route, &prepared, &request, &options);
    // No shapes but with NONE and OUTPUT_INSUFFICIENT_SIZE, no times but with NONE.
    let legal = validate_result(&result, request.outputs.len(), true);
    assert_eq!(legal, Ok(()), "{name}: {result:?}");
    match result.status {
        ErrorStatus::None => Reached::Ran,
        _ => Reached::Failed,
    }
}

fn random_bytes_are_those_of_the_converter() {
    for (seed, length, first) in
        [(2, 44_995, 0x3e8c_a2fa_u32), (0, 48_270, 0x57e1_1f45), (1, 48_270, 0x57e1_1f45)]
    {
        let bytes = random(seed);
        assert_eq!((bytes.len(), &bytes[..4]), (length, &first.to_le_bytes()[..]), "{seed}");
    }
}
