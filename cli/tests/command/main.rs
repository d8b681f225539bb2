//! The command as its users call it.

mod bench;
mod death;
mod explain;
mod readme;
mod reconnect;
mod run;
mod service_process;
mod service_systemd;
mod stream;
mod stream_pictures;
mod stream_sound;
mod support;
mod system_calls;
mod threads;
mod verify;
mod verify_models;
mod wrong_input;
