//! What a program does that was started again as a part of an attack.

use std::path::Path;
use std::process::ExitCode;

use super::{attackers, child, honest, service};

/// The argument with which a confined process becomes the service.
const SERVE: &str = "serve";

/// Plays a role, where this process was started for that: a program with attacks does this before
/// anything else.
#[must_use]
pub fn play_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [first, ..] if first == SERVE => Some(burst::main()),
        [first, user, role, rest @ ..] if first == child::ARGUMENT => {
            Some(match child::settle(user).and_then(|()| play(role, rest)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{role}: {error}");
                    ExitCode::FAILURE
                }
            })
        }
        _ => None,
    }
}

fn play(role: &str, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    match (role, arguments) {
        (service::ROLE, limits) => service::confine(limits),
        (honest::STREAM, [socket]) => honest::stream(Path::new(socket)),
        (honest::CONNECT, [socket]) => honest::connect(Path::new(socket)),
        (attack, sockets) => {
            attackers::play(attack, sockets).unwrap_or_else(|| Err("no such role".into()))
        }
    }
}
