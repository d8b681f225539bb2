//! The terminal while figures are watched: `q` counts as soon as it is pressed. Afterwards the terminal is as it
//! was before, whatever ended it.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The keys of a terminal. Copies are the same.
#[derive(Clone, Default)]
pub(super) struct Keys(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The terminal's settings, where they were changed.
    before: Option<Termios>,
    /// It is not to be changed any more.
    is_over: bool,
}

/// Restores the terminal when it is dropped.
pub(super) struct Restores<'k>(&'k Keys);

impl Keys {
    /// Asks the terminal for keys, where it is one and this process is in its foreground.
    pub(super) fn begin(&self) -> Restores<'_> {
        let mut state = self.state();
        if !state.is_over {
            state.before = one_by_one();
        }
        Restores(self)
    }

    /// The terminal is as it was before, and stays so.
    pub(super) fn restore(&self) {
        let mut state = self.state();
        state.is_over = true;
        if let Some(before) = state.before.take() {
            // Where the terminal is gone nothing is left to restore.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so long, or until somebody wants it to end; says whether somebody does.
    pub(super) fn want_end_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        if self.state().before.is_none() {
            std::thread::sleep(time);
            return false;
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match pressed_within(left) {
                Some(keys) if keys.iter().any(|key| b"qQ".contains(key)) => return true,
                Some(_) if left.is_zero() => return false,
                Some(_) => {}
                None => {
                    std::thread::sleep(left);
                    return false;
                }
            }
        }
    }
}

impl Drop for Restores<'_> {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Has the terminal give keys one by one and not draw them; gives how it was before. Keys that mean signals
/// still do.
fn one_by_one() -> Option<Termios> {
    let terminal = std::io::stdin();
    // In the background it is not this process's to change.
    let is_ours = terminal.is_terminal() && tcgetpgrp(&terminal) == Ok(getpgrp());
    let before = is_ours.then(|| tcgetattr(&terminal).ok()).flatten()?;
    let mut changed = before.clone();
    changed.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO);
    changed.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    changed.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    tcsetattr(&terminal, SetArg::TCSANOW, &changed).ok()?;
    Some(before)
}

/// Keys that were pressed within this time, none where none were; `None` where none can come any more.
fn pressed_within(time: Duration) -> Option<Vec<u8>> {
    let terminal = std::io::stdin();
    let mut watched = [PollFd::new(&terminal, PollFlags::IN)];
    let limit = Timespec::try_from(time).ok();
    match poll(&mut watched, limit.as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Some(Vec::new()),
        Ok(_) => {}
        Err(_) => return None,
    }
    // Past the buffer of the standard library, which would keep what poll waits for.
    let mut keys = [0; 64];
    match read(&terminal, &mut keys) {
        Ok(0) | Err(_) => None,
        Ok(count) => Some(keys[..count].to_vec()),
    }
}
