//! The threads that matrix products run on.

use std::cell::Cell;

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread a pool of one for the matrix library.
///
/// The library splits work over the rayon pool of the calling thread. A thread without a pool would
/// use the global one: every core of the machine, with a wake-up and an allocation per product. In a
/// pool of one the library computes on the calling thread. A thread that already belongs to a pool (an
/// application's own worker) is left there: it is the application's choice.
pub(crate) fn enter() {
    ENTERED.with(|entered| {
        if entered.get() {
            return;
        }
        entered.set(true);
        if let Err(error) =
            rayon_core::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()
        {
            tracing::debug!(%error, "this thread keeps the pool it has");
        }
    });
}
