//! The command as its users call it.

use std::os::unix::process::CommandExt;
use std::process::Command;

mod answers;
mod bench;
mod browser;
mod cache;
mod calibrate;
mod camera;
mod compared;
mod damaged;
mod death;
mod devices;
mod doctor;
mod endings;
mod explain;
mod gone;
mod interrupted;
mod json_object;
mod live_line;
mod log_tags;
mod mlts;
mod outside;
mod package;
mod pages;
mod priority;
mod python;
mod readme;
mod reconnect;
mod run;
mod service_process;
mod service_systemd;
mod stopping;
mod stream;
mod stream_pictures;
mod stream_sound;
mod stress;
mod support;
mod system_calls;
mod terminal;
mod threads;
mod told;
mod top;
mod tour;
mod trace;
mod verify;
mod verify_models;
mod verify_ndk;
mod verify_random;
mod view;
mod wrong_input;

fn main() -> std::process::ExitCode {
    if let Some(error) = with_signals() {
        eprintln!(
            "signals that this process ignores cannot be set back with env (coreutils): {error}"
        );
        return std::process::ExitCode::FAILURE;
    }
    burst_testing::run(&[
        answers::TESTS,
        bench::TESTS,
        browser::TESTS,
        cache::TESTS,
        calibrate::TESTS,
        camera::TESTS,
        compared::TESTS,
        damaged::TESTS,
        death::TESTS,
        devices::TESTS,
        doctor::TESTS,
        endings::TESTS,
        explain::TESTS,
        gone::TESTS,
        interrupted::TESTS,
        json_object::TESTS,
        live_line::TESTS,
        log_tags::TESTS,
        mlts::TESTS,
        outside::TESTS,
        package::TESTS,
        pages::TESTS,
        priority::TESTS,
        python::TESTS,
        readme::TESTS,
        reconnect::TESTS,
        run::TESTS,
        service_process::TESTS,
        service_systemd::TESTS,
        stopping::TESTS,
        stream::TESTS,
        stream_pictures::TESTS,
        stream_sound::TESTS,
        stress::TESTS,
        system_calls::TESTS,
        terminal::TESTS,
        threads::TESTS,
        told::TESTS,
        top::TESTS,
        tour::TESTS,
        trace::TESTS,
        verify::TESTS,
        verify_models::TESTS,
        verify_ndk::TESTS,
        verify_random::TESTS,
        view::TESTS,
        wrong_input::TESTS,
    ])
}

/// Starts this program again where it ignores signals that commands here are sent, as a shell's background
/// job and what `nohup` starts do: `burst` leaves them ignored. Gives why that cannot be.
fn with_signals() -> Option<std::io::Error> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    // SIGHUP, SIGINT and SIGTERM have the numbers 1, 2 and 15; the first bit is that of signal 1.
    let asked = 1 << 0 | 1 << 1 | 1 << 14;
    if u64::from_str_radix(ignored.trim(), 16).ok()? & asked == 0 {
        return None;
    }
    let mut arguments = std::env::args_os();
    let program = arguments.next()?;
    let mut again = Command::new("env");
    again.arg("--default-signal=HUP,INT,TERM").arg(program).args(arguments);
    Some(again.exec())
}
