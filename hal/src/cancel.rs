//! Giving up executions whose results nobody will read.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A flag that is set when nobody wants the results any more: the client hung up, or was killed, or
/// dropped what it waited for.
///
/// All copies share one flag. Any copy can set it, and it stays set. An execution that holds a copy
/// checks it wherever it checks its deadline; whoever waits for something else meanwhile, such as
/// another process, [is told](CancelWord::when_cancelled).
#[derive(Debug, Clone, Default)]
pub struct CancelWord(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_set: AtomicBool,
    hooks: Mutex<Hooks>,
}

#[derive(Default)]
struct Hooks {
    next: u64,
    waiting: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

/// What is done when the word is set; taken back when this is dropped.
#[derive(Debug)]
#[must_use = "nothing is done once this is dropped"]
pub struct CancelHook(Option<(Arc<Shared>, u64)>);

impl CancelWord {
    /// Asks every execution that holds a copy to give up.
    pub fn cancel(&self) {
        // Relaxed: no other memory is published through this flag.
        self.0.is_set.store(true, Ordering::Relaxed);
        // Who adds a hook from now on either sees the flag or is in this list: both under the lock.
        let hooks = std::mem::take(&mut self.0.lock().waiting);
        for (_, hook) in hooks {
            hook();
        }
    }

    /// Whether [`cancel`](CancelWord::cancel) was called on any copy.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Calls `hook` once the word is set, on the thread that sets it; at once where it is set already.
    pub fn when_cancelled(&self, hook: impl FnOnce() + Send + 'static) -> CancelHook {
        let mut hooks = self.0.lock();
        if self.is_cancelled() {
            drop(hooks);
            hook();
            return CancelHook(None);
        }
        let number = hooks.next;
        hooks.next += 1;
        hooks.waiting.push((number, Box::new(hook)));
        CancelHook(Some((Arc::clone(&self.0), number)))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelHook {
    fn drop(&mut self) {
        if let Some((shared, number)) = self.0.take() {
            let mut hooks = shared.lock();
            let at = hooks.waiting.iter().position(|(one, _)| *one == number);
            let hook = at.map(|at| hooks.waiting.swap_remove(at));
            drop(hooks);
            drop(hook); // what it holds may itself ask for the lock
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_hook_is_called_once_whenever_it_was_added_and_never_after_it_was_taken_back() {
        let word = CancelWord::default();
        let called = Arc::new(AtomicUsize::new(0));
        let count = |by: usize| {
            let called = Arc::clone(&called);
            move || {
                called.fetch_add(by, Ordering::Relaxed);
            }
        };
        let _before = word.when_cancelled(count(1));
        drop(word.clone().when_cancelled(count(10)));
        assert_eq!(called.load(Ordering::Relaxed), 0);
        word.cancel();
        word.clone().cancel();
        assert_eq!(called.load(Ordering::Relaxed), 1);
        let _after = word.when_cancelled(count(100));
        assert_eq!(called.load(Ordering::Relaxed), 101);
        assert!(word.is_cancelled());
    }

    #[test]
    fn a_hook_may_add_and_drop_hooks() {
        let word = CancelWord::default();
        let copy = word.clone();
        let other = word.when_cancelled(|| ());
        let _hook = word.when_cancelled(move || {
            drop(copy.when_cancelled(|| ()));
            drop(other);
        });
        word.cancel();
    }
}
