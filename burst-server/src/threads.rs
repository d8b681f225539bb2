//! Starting threads. No thread of the service ever joins another one.
//!
//! A thread that is joined may be executing, for as long as its device likes, and the thread that joins
//! it does nothing else meanwhile; but a thread that reads a client's socket must always come back to
//! it. So each thread owns what it works with instead, and the last one to let go of something gives it
//! back. Only [`Service::run`](crate::Service::run) and
//! [`Service::serve_socket`](crate::Service::serve_socket) wait, after the end of the connections, until
//! the last thread of the last client has let go.
//!
//! The number of threads stays bounded all the same: each burst is charged to its client until its
//! thread has ended, and each further reader of a socket for as long as its thread lives. One thread of the
//! service's own gives freed memory back, for a moment.

use std::sync::{Arc, Mutex};
use std::thread::Builder;

use crate::lines::Lines;
use crate::panics::{catch_panic, lock};

/// Lines of the log about threads that were not to be had, whoever asked: clients may ask again at once.
static STARVED: Lines = Lines::new();

/// Starts a thread that runs `body` on `parcel`.
///
/// # Errors
/// The system has no thread left; `parcel` comes back untouched.
pub(crate) fn start<T: Send + 'static>(
    name: String,
    parcel: T,
    body: impl FnOnce(T) + Send + 'static,
) -> Result<(), T> {
    // Where no thread starts, the standard library drops its closure. Some parcels must not be
    // dropped by the calling thread, so it lies where both can reach it.
    let shared = Arc::new(Mutex::new(Some(parcel)));
    let in_thread = Arc::clone(&shared);
    let label = name.clone();
    let started = Builder::new().name(name).spawn(move || {
        let Some(parcel) = lock(&in_thread).take() else { return };
        if catch_panic(|| body(parcel)).is_err() {
            tracing::error!(thread = label, "a thread of the service panicked and has ended");
        }
    });
    match started {
        Ok(_never_joined) => Ok(()),
        Err(error) => {
            if let Some(left_out) = STARVED.next() {
                tracing::warn!(%error, left_out, "the system starts no further thread");
            }
            // Only the thread would have taken it, and there is none.
            lock(&shared).take().map_or(Ok(()), Err)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_gets_its_parcel_and_a_panic_ends_it_alone() {
        let (send, receive) = mpsc::channel();
        start("test-parcel".to_owned(), send, |send| {
            send.send(std::thread::current().name().map(str::to_owned)).unwrap();
            panic!("a panic that is wanted here");
        })
        .unwrap();
        assert_eq!(receive.recv().unwrap().as_deref(), Some("test-parcel"));
        assert!(receive.recv().is_err(), "its parcel is dropped with it");
    }
}
