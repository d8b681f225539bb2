//! The command as its users call it.

mod bench;
mod cache;
mod calibrate;
mod death;
mod devices;
mod explain;
mod readme;
mod reconnect;
mod run;
mod service_process;
mod service_systemd;
mod stopping;
mod stream;
mod stream_pictures;
mod stream_sound;
mod support;
mod system_calls;
mod threads;
mod verify;
mod verify_models;
mod wrong_input;

fn main() -> std::process::ExitCode {
    burst_testing::run(&[
        bench::TESTS,
        cache::TESTS,
        calibrate::TESTS,
        death::TESTS,
        devices::TESTS,
        explain::TESTS,
        readme::TESTS,
        reconnect::TESTS,
        run::TESTS,
        service_process::TESTS,
        service_systemd::TESTS,
        stopping::TESTS,
        stream::TESTS,
        stream_pictures::TESTS,
        stream_sound::TESTS,
        system_calls::TESTS,
        threads::TESTS,
        verify::TESTS,
        verify_models::TESTS,
        wrong_input::TESTS,
    ])
}
