//! Executions whose results the service tells later, and the thread that passes them on.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use burst_hal::CancelHook;
use burst_wire::control::Executed;
use rustix::io::Errno;

use crate::ClientError;
use crate::waiting::lock;

/// A client chooses its numbers from here on; those below are the service's.
const OWN_NUMBERS: u32 = 1 << 31;

/// How an execution came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The service told its result.
    Executed(Executed),
    /// The connection ended before that.
    Lost,
    /// It was not started.
    NotStarted(ClientError),
}

/// What is done when an execution has ended. It holds what the execution uses.
pub(crate) type Completion = Box<dyn FnOnce(Ended) + Send>;

/// Executions that were started, by number.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    table: Mutex<Table>,
    callbacks: Arc<Callbacks>,
}

#[derive(Debug, Default)]
struct Table {
    closed: bool,
    last: u32,
    started: HashMap<u32, Started>,
}

/// An execution whose result has not come.
struct Started {
    complete: Completion,
    /// Cancels it; dropped with it, so that nobody cancels another one of this number.
    hook: Option<CancelHook>,
}

/// Results on their way from the watcher, which must not wait, to the program's callbacks, which may
/// take as long as they like.
#[derive(Debug, Default)]
struct Callbacks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    ready: VecDeque<(Started, Ended)>,
    thread: Option<JoinHandle<()>>,
}

impl Executions {
    /// Takes an execution in before it is asked for; its number. The first one starts the thread that
    /// calls back.
    ///
    /// # Errors
    /// The connection has ended, or there is no thread; nothing was done with `complete` then.
    pub(crate) fn begin(&self, complete: Completion) -> Result<u32, (NotBegun, Completion)> {
        if let Err(errno) = self.callbacks.start_thread() {
            return Err((NotBegun::NoThread(errno), complete));
        }
        let mut table = lock(&self.table);
        if table.closed {
            return Err((NotBegun::Closed, complete));
        }
        let number = table.next_number();
        table.started.insert(number, Started { complete, hook: None });
        Ok(number)
    }

    /// From now on the execution is cancelled by this; not where it has ended meanwhile.
    pub(crate) fn attach(&self, number: u32, hook: CancelHook) {
        let unused = match lock(&self.table).started.get_mut(&number) {
            Some(started) => started.hook.replace(hook),
            None => Some(hook),
        };
        drop(unused); // without the lock: what it holds may be the last of something
    }

    /// The service refused it; `None` where the connection ended first, and so it is completed.
    pub(crate) fn withdraw(&self, number: u32) -> Option<Completion> {
        Some(lock(&self.table).started.remove(&number)?.complete)
    }

    /// Its caller gave up waiting for it to be started. Should it have been, `in_use` is held until its
    /// result comes.
    pub(crate) fn abandon(
        &self,
        number: u32,
        in_use: impl Send + Sync + 'static,
    ) -> Option<Completion> {
        let mut table = lock(&self.table);
        let started = table.started.get_mut(&number)?;
        Some(std::mem::replace(&mut started.complete, Box::new(move |_| drop(in_use))))
    }

    /// One whose caller gave up waiting for it to be started never was. That the caller has not let go of it yet is a
    /// matter of moments: it is told here then.
    pub(super) fn forget(&self, number: u32) {
        let started = lock(&self.table).started.remove(&number);
        let ended = || Ended::NotStarted(ClientError::Timeout);
        self.callbacks.push(started.map(|started| (started, ended())));
    }

    /// The service told its result. `false` for a number that is not in use.
    pub(super) fn end(&self, number: u32, executed: Executed) -> bool {
        let started = lock(&self.table).started.remove(&number);
        let is_known = started.is_some();
        self.callbacks.push(started.map(|started| (started, Ended::Executed(executed))));
        is_known
    }

    /// The connection has ended: all that were started are lost.
    pub(super) fn close(&self) {
        let lost = {
            let mut table = lock(&self.table);
            table.closed = true;
            std::mem::take(&mut table.started)
        };
        self.callbacks.push(lost.into_values().map(|started| (started, Ended::Lost)));
        self.callbacks.close();
    }

    /// Waits for the end of the thread, where there is one and this is another. Nothing is left to call
    /// then: whoever has an execution under way holds the connection.
    pub(super) fn join(&self) {
        let thread = lock(&self.callbacks.state).thread.take();
        let is_this = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| !is_this(thread))
            && thread.join().is_err()
        {
            tracing::error!("the thread that calls back panicked");
        }
    }

    /// In a forked child: the thread is the parent's.
    pub(super) fn forget_thread(&self) {
        // The lock may have been held when the process forked, for ever now.
        if let Ok(mut state) = self.callbacks.state.try_lock() {
            std::mem::forget(state.thread.take());
        }
    }
}

/// Why an execution was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotBegun {
    /// The connection has ended.
    Closed,
    /// The system starts no thread.
    NoThread(Errno),
}

impl Table {
    /// A number that is not in use; none is used twice before all were.
    fn next_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1) | OWN_NUMBERS;
            if !self.started.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

impl Callbacks {
    fn start_thread(self: &Arc<Self>) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        if state.thread.is_none() && !state.closed {
            let callbacks = Arc::clone(self);
            let thread = std::thread::Builder::new()
                .name("burst-callbacks".to_owned())
                .spawn(move || callbacks.run())
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
            state.thread = Some(thread);
        }
        Ok(())
    }

    fn push(&self, ended: impl IntoIterator<Item = (Started, Ended)>) {
        lock(&self.state).ready.extend(ended);
        self.changed.notify_one();
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_one();
    }

    /// Calls back, one after the other, until the connection has ended and everybody was told.
    fn run(&self) {
        while let Some((Started { complete, hook }, ended)) = self.next() {
            drop(hook);
            // It ends that callback alone.
            if catch_unwind(AssertUnwindSafe(|| complete(ended))).is_err() {
                tracing::error!("the callback of an execution panicked");
            }
        }
    }

    fn next(&self) -> Option<(Started, Ended)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(ended) = state.ready.pop_front() {
                return Some(ended);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("hook", &self.hook).finish_non_exhaustive()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("closed", &self.closed)
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use burst_hal::{CancelWord, ErrorStatus, ExecutionResult};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn executed() -> Executed {
        Executed::new(&ExecutionResult::of(ErrorStatus::None), None)
    }

    fn begin(executions: &Executions) -> (u32, Receiver<Ended>) {
        let (tell, told) = channel();
        let number = executions.begin(Box::new(move |ended| tell.send(ended).unwrap()));
        (number.unwrap_or_else(|(why, _)| panic!("{why:?}")), told)
    }

    #[test]
    fn results_reach_who_started_and_the_end_of_the_connection_reaches_the_others() {
        let executions = Executions::default();
        let (first, told_first) = begin(&executions);
        let (second, told_second) = begin(&executions);
        assert_ne!(first, second);
        assert!(executions.end(second, executed()));
        assert!(matches!(told_second.recv_timeout(LONG), Ok(Ended::Executed(_))));
        assert!(!executions.end(second, executed()), "once");
        assert!(!executions.end(77, executed()));
        executions.close();
        assert!(matches!(told_first.recv_timeout(LONG), Ok(Ended::Lost)));
        let refused = executions.begin(Box::new(|_| panic!("not this one")));
        assert!(matches!(refused, Err((NotBegun::Closed, _))));
        executions.join();
    }

    #[test]
    fn numbers_are_the_upper_half_and_those_in_use_are_not_given_again() {
        let executions = Executions::default();
        lock(&executions.table).last = u32::MAX - 1;
        let numbers = [(); 3].map(|()| begin(&executions).0);
        assert_eq!(numbers, [u32::MAX, OWN_NUMBERS, OWN_NUMBERS + 1]);
        lock(&executions.table).last = u32::MAX - 1;
        assert_eq!(begin(&executions).0, OWN_NUMBERS + 2);
        executions.close();
        executions.join();
    }

    #[test]
    fn a_callback_that_panics_ends_nothing_but_itself() {
        let executions = Executions::default();
        let number = executions.begin(Box::new(|_| panic!("as it was told to")));
        let number = number.unwrap_or_else(|(why, _)| panic!("{why:?}"));
        let (next, told) = begin(&executions);
        executions.end(number, executed());
        executions.end(next, executed());
        assert!(matches!(told.recv_timeout(LONG), Ok(Ended::Executed(_))));
        executions.close();
        executions.join();
    }

    #[test]
    fn nobody_cancels_what_has_ended_and_what_was_abandoned_is_held_until_then() {
        let executions = Executions::default();
        let word = CancelWord::default();
        let (number, _told) = begin(&executions);
        executions.attach(number, word.when_cancelled(|| panic!("it has ended")));
        let held = Arc::new(());
        drop(executions.abandon(number, Arc::clone(&held)));
        assert_eq!(Arc::strong_count(&held), 2);
        executions.end(number, executed());
        let (last, told) = begin(&executions);
        executions.end(last, executed());
        told.recv_timeout(LONG).unwrap();
        executions.attach(number, word.when_cancelled(|| panic!("it has ended")));
        word.cancel();
        assert_eq!(Arc::strong_count(&held), 1);
        let (number, _told) = begin(&executions);
        drop(executions.abandon(number, Arc::clone(&held)));
        executions.forget(number);
        executions.close();
        executions.join();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn one_that_never_started_is_told_also_where_its_caller_is_about_to_give_up() {
        let executions = Executions::default();
        let (number, told) = begin(&executions);
        executions.forget(number);
        let ended = told.recv_timeout(LONG);
        assert!(matches!(ended, Ok(Ended::NotStarted(ClientError::Timeout))), "{ended:?}");
        assert!(executions.abandon(number, ()).is_none(), "told once");
        assert!(told.recv_timeout(LONG).is_err(), "the callback is gone");
        executions.close();
        executions.join();
    }
}
