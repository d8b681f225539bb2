//! The threads of executions that nobody waits for. They start with the first of these.

use std::sync::OnceLock;

use burst_launch::Launcher;

/// For executions of the framework: as many threads as cores, and a bounded queue.
pub(crate) fn launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(Launcher::default)
}

/// For devices of this process. Not the same: an execution of the framework may wait for one of a device, and
/// would wait for itself where all threads do so.
pub(crate) fn device_launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(Launcher::default)
}
