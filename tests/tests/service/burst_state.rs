//! States go from run to run where they lie: no copy, no write of the client.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::atomic::Ordering;

use burst_client::{Carried, ClientError, StreamOptions, StreamPath, Wait};

use crate::burst_support::{Private, long, wide_model};

fn carrying(carried: Vec<Carried>) -> StreamOptions {
    let mut options = StreamOptions::default();
    options.wait = Wait::Sleep;
    options.carried = carried;
    options
}

/// The device adds 1 to every byte, so that a state counts the runs.
#[test]
fn a_carried_output_is_the_input_of_the_next_run() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    for (path, service_outputs) in [
        (StreamPath::Burst, true),
        (StreamPath::Burst, false),
        (StreamPath::Synchronous, true),
        (StreamPath::Synchronous, false),
    ] {
        // Crosswise: input 1 is fed by output 2, input 2 by output 1.
        let mut options =
            carrying(vec![Carried { input: 1, output: 2 }, Carried { input: 2, output: 1 }]);
        (options.path, options.service_outputs) = (path, service_outputs);
        let mut stream = device.stream(&wide_model(3), &options).unwrap();
        assert_eq!(stream.input(1), [0; 16], "what states begin with");
        for run in 1..=300_u32 {
            stream.input(0).fill(u8::try_from(run % 7).unwrap());
            stream.run(long()).unwrap();
            let counted = u8::try_from(run % 256).unwrap();
            assert_eq!(stream.output(0).unwrap(), [u8::try_from(run % 7).unwrap() + 1; 16]);
            for output in [1, 2] {
                assert_eq!(stream.output(output).unwrap(), [counted; 16], "{path:?} {run}");
            }
        }
        stream.reset_states();
        stream.run(long()).unwrap();
        assert_eq!(stream.output(1).unwrap(), [1; 16], "zeros again");
        // What the client writes there is where states begin.
        stream.input(1).fill(40);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(2).unwrap(), [2; 16], "not before the next reset");
        stream.reset_states();
        stream.run(long()).unwrap();
        assert_eq!(stream.output(1).unwrap(), [41; 16]);
    }
    drop((device, client));
    service.join();
}

#[test]
fn a_run_that_fails_leaves_the_state_as_it_was() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let options = carrying(vec![Carried { input: 0, output: 0 }]);
    let mut stream = device.stream(&wide_model(2), &options).unwrap();
    for _ in 0..2 {
        stream.run(long()).unwrap();
    }
    service.controls.insufficient.store(true, Ordering::SeqCst);
    let error = stream.run(long()).unwrap_err();
    assert!(matches!(error, ClientError::Execution { .. }), "{error}");
    service.controls.insufficient.store(false, Ordering::SeqCst);
    stream.run(long()).unwrap();
    assert_eq!(stream.output(0).unwrap(), [3; 16]);
    drop((stream, device, client));
    service.join();
}

#[test]
fn pairs_that_are_no_states_are_refused() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let pair = |input, output| Carried { input, output };
    for wrong in [
        vec![pair(2, 0)],
        vec![pair(0, 2)],
        vec![pair(0, 0), pair(0, 1)],
        vec![pair(0, 0), pair(1, 0)],
    ] {
        let error = device.stream(&wide_model(2), &carrying(wrong)).unwrap_err();
        assert!(matches!(error, ClientError::NotAState { .. }), "{error}");
    }
}
