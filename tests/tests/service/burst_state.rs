//! States go from run to run where they lie: no copy, no write of the client.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::atomic::Ordering;

use burst_client::{ClientError, Route, StateBinding, StreamOptions, Wait};
use burst_hal::OperandType;
use burst_hal::session::LayoutError;

use crate::burst_support::{Private, long, wide_model};

fn carrying(states: Vec<StateBinding>) -> StreamOptions {
    let mut options = StreamOptions::default();
    options.wait = Wait::Sleep;
    options.states = states;
    options
}

/// The device adds 1 to every byte, so that a state counts the runs.
#[test]
fn a_carried_output_is_the_input_of_the_next_run() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    for (route, service_outputs) in [
        (Route::Burst, true),
        (Route::Burst, false),
        (Route::Synchronous, true),
        (Route::Synchronous, false),
    ] {
        // Crosswise: input 1 is fed by output 2, input 2 by output 1.
        let mut options = carrying(vec![
            StateBinding { input: 1, output: 2 },
            StateBinding { input: 2, output: 1 },
        ]);
        (options.route, options.service_outputs) = (route, service_outputs);
        let mut stream = device.stream(&wide_model(3), &options).unwrap();
        assert_eq!(stream.input(1), [0; 16], "what states begin with");
        for run in 1..=300_u32 {
            stream.input(0).fill(u8::try_from(run % 7).unwrap());
            stream.run(long()).unwrap();
            let counted = u8::try_from(run % 256).unwrap();
            assert_eq!(stream.output(0).unwrap(), [u8::try_from(run % 7).unwrap() + 1; 16]);
            for output in [1, 2] {
                assert_eq!(stream.output(output).unwrap(), [counted; 16], "{route} {run}");
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

/// A state whose type has a zero point begins there: in every frame, and again after a reset.
#[test]
fn a_state_of_quant16_asymm_begins_at_its_zero_point() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let mut model = wide_model(1);
    for operand in &mut model.main.operands {
        if operand.ty == OperandType::TensorFloat32 {
            (operand.ty, operand.scale) = (OperandType::TensorQuant16Asymm, 0.5);
            operand.zero_point = 0x0A0B;
        }
    }
    let after = |runs: u8| -> Vec<u8> {
        let element = 0x0A0B_u16.to_ne_bytes().map(|byte| byte + runs);
        element.repeat(4)
    };
    for route in Route::ALL {
        let mut options = carrying(vec![StateBinding { input: 0, output: 0 }]);
        (options.route, options.frames) = (route, 2);
        let mut stream = device.stream(&model, &options).unwrap();
        for frame in 0..2 {
            assert_eq!(stream.input_of(frame, 0), after(0), "{route}, frame {frame}");
            for runs in 1..=3 {
                stream.run_frame(frame, long()).unwrap();
                assert_eq!(stream.output(0).unwrap(), after(runs), "{route}, frame {frame}");
            }
            stream.reset_states();
        }
    }
    drop((device, client));
    service.join();
}

#[test]
fn a_run_that_fails_leaves_the_state_as_it_was() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let options = carrying(vec![StateBinding { input: 0, output: 0 }]);
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
    let pair = |input, output| StateBinding { input, output };
    for wrong in [
        vec![pair(2, 0)],
        vec![pair(0, 2)],
        vec![pair(0, 0), pair(0, 1)],
        vec![pair(0, 0), pair(1, 0)],
    ] {
        let error = device.stream(&wide_model(2), &carrying(wrong)).unwrap_err();
        assert!(matches!(error, ClientError::Layout(LayoutError::NotAState { .. })), "{error}");
    }
}
