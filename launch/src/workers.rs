//! Threads that execute, and what waits for one of them: the most urgent first, then in order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::Builder;

use burst_hal::{CancelHook, CancelWord, ErrorStatus, Priority};

use crate::LaunchError;
use crate::locks::{guarded, lock};
use crate::watcher::Alarm;

/// What is to be done with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is its turn, on this thread.
    Run,
    /// It was cancelled before its turn came, by this thread.
    CalledOff,
    /// Its deadline has passed before its turn came, which this thread tells.
    TooLate,
    /// It was not taken, with this status.
    Refused(ErrorStatus),
}

/// Something to execute, or to be called off.
pub(crate) type Job = Box<dyn FnOnce(Turn) + Send>;

/// Threads and what waits for them. The threads start as they are needed; when this is dropped they do
/// what still waits, and end.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads_max: usize,
    waiting_max: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// One queue for each priority, the most urgent first.
    queues: [VecDeque<Waiting>; 3],
    next: u64,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

struct Waiting {
    number: u64,
    job: Job,
    hook: Option<CancelHook>,
    /// Goes off at its deadline.
    alarm: Option<Alarm>,
}

/// Where a job waits, or has waited.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    shared: Weak<Shared>,
    number: u64,
}

impl Workers {
    pub(crate) fn new(threads_max: usize, waiting_max: usize) -> Self {
        Workers { shared: Arc::default(), threads_max: threads_max.max(1), waiting_max }
    }

    /// Has a job done by one of the threads. It is called off where the word is set before its turn.
    ///
    /// # Errors
    /// [`LaunchError::QueueFull`] or [`LaunchError::NoThread`], with the job, which was not called.
    pub(crate) fn push(
        &self,
        priority: Priority,
        cancel: &CancelWord,
        job: Job,
    ) -> Result<Place, (LaunchError, Job)> {
        let mut state = lock(&self.shared.state);
        let waiting: usize = state.queues.iter().map(VecDeque::len).sum();
        if waiting >= self.waiting_max {
            return Err((LaunchError::QueueFull { waiting: self.waiting_max }, job));
        }
        // More jobs than threads that are free to take them.
        if waiting >= state.idle && state.threads < self.threads_max {
            match self.start(state.threads) {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err((error, job)),
                Err(_) => {} // the threads that there are take it in turn
            }
        }
        let number = state.next;
        state.next += 1;
        state.queues[place(priority)].push_back(Waiting { number, job, hook: None, alarm: None });
        drop(state);
        self.shared.work.notify_one();
        let place = Place { shared: Arc::downgrade(&self.shared), number };
        let own = place.clone();
        let hook = cancel.when_cancelled(move || own.leave(Turn::CalledOff));
        self.shared.keep(number, |waiting| &mut waiting.hook, hook);
        Ok(place)
    }

    fn start(&self, number: usize) -> Result<(), LaunchError> {
        let shared = Arc::clone(&self.shared);
        let started = Builder::new().name(format!("launch-{number}")).spawn(move || shared.work());
        started.map(drop).map_err(|error| {
            tracing::warn!(%error, "the system starts no further thread for executions");
            LaunchError::NoThread
        })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.work.notify_all();
    }
}

impl Place {
    /// Ends the waiting, where it has not ended: the job is done on this thread, and told why.
    pub(crate) fn leave(&self, why: Turn) {
        if let Some(shared) = self.shared.upgrade() {
            shared.leave(self.number, why);
        }
    }

    /// Keeps what goes off at the deadline, as long as the job waits.
    pub(crate) fn keep(&self, alarm: Alarm) {
        if let Some(shared) = self.shared.upgrade() {
            shared.keep(self.number, |waiting| &mut waiting.alarm, alarm);
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some(Waiting { job, hook, alarm, .. }) = self.next() {
            drop((hook, alarm));
            if guarded(|| job(Turn::Run)).is_none() {
                tracing::error!("what was to be told of an execution's end panicked");
            }
        }
    }

    /// The next job; `None` where none will come.
    fn next(&self) -> Option<Waiting> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.queues.iter_mut().find_map(VecDeque::pop_front) {
                return Some(next);
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Keeps something that may end the waiting of a job, as long as it waits.
    fn keep<T>(&self, number: u64, place: impl FnOnce(&mut Waiting) -> &mut Option<T>, what: T) {
        let mut what = Some(what);
        let mut state = lock(&self.state);
        let mut waiting = state.queues.iter_mut().flatten();
        if let Some(waiting) = waiting.find(|waiting| waiting.number == number) {
            *place(waiting) = what.take();
        }
        drop(state);
        drop(what); // with no lock held: it asks for one of its own
    }

    fn leave(&self, number: u64, why: Turn) {
        let mut state = lock(&self.state);
        let waiting = state.queues.iter_mut().find_map(|queue| {
            let at = queue.iter().position(|waiting| waiting.number == number)?;
            queue.remove(at)
        });
        drop(state);
        if let Some(Waiting { job, hook, alarm, .. }) = waiting {
            drop((hook, alarm));
            if guarded(|| job(why)).is_none() {
                tracing::error!(
                    ?why,
                    "what was to be told of an execution that was not begun panicked"
                );
            }
        }
    }
}

/// Which queue.
fn place(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Medium => 1,
        Priority::Low => 2,
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting: usize = self.queues.iter().map(VecDeque::len).sum();
        f.debug_struct("State")
            .field("waiting", &waiting)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// One thread that is busy until the sender is dropped.
    fn busy(waiting_max: usize) -> (Workers, Sender<()>) {
        let workers = Workers::new(1, waiting_max);
        let ((release, wait), (begins, begun)) = (channel::<()>(), channel());
        let job = move |_| {
            begins.send(()).unwrap();
            let _ = wait.recv();
        };
        push(&workers, Priority::Low, job).unwrap();
        begun.recv_timeout(LONG).unwrap();
        (workers, release)
    }

    fn push(
        workers: &Workers,
        priority: Priority,
        job: impl FnOnce(Turn) + Send + 'static,
    ) -> Result<(), LaunchError> {
        let pushed = workers.push(priority, &CancelWord::default(), Box::new(job));
        pushed.map(drop).map_err(|(error, _)| error)
    }

    fn next<T>(said: &Receiver<T>) -> T {
        said.recv_timeout(LONG).unwrap()
    }

    #[test]
    fn the_most_urgent_goes_first_and_equals_go_in_order() {
        let (workers, release) = busy(10);
        let (say, said) = channel();
        use Priority::{High, Low, Medium};
        for (number, priority) in (0..).zip([Low, Medium, High, Medium, High, Low]) {
            let say = say.clone();
            push(&workers, priority, move |_| say.send(number).unwrap()).unwrap();
        }
        drop(workers); // what waits is done all the same
        drop(release);
        let order: Vec<i32> = (0..6).map(|_| next(&said)).collect();
        assert_eq!(order, [2, 4, 1, 3, 0, 5]);
    }

    #[test]
    fn a_full_queue_refuses_and_a_cancelled_job_makes_room() {
        let (workers, _release) = busy(1);
        let (say, said) = channel();
        let cancel = CancelWord::default();
        let job: Job = Box::new(move |turn| say.send(turn).unwrap());
        workers.push(Priority::High, &cancel, job).map_err(|(error, _)| error).unwrap();
        let refused = push(&workers, Priority::High, |_| panic!("it was refused"));
        assert_eq!(refused, Err(LaunchError::QueueFull { waiting: 1 }));
        cancel.cancel();
        assert_eq!(said.try_recv(), Ok(Turn::CalledOff), "at once, though no thread is free");
        push(&workers, Priority::High, |_| ()).unwrap();
    }

    #[test]
    fn a_job_leaves_its_place_once_and_never_once_it_was_begun() {
        let (workers, release) = busy(10);
        let (say, said) = channel();
        let push = |priority| {
            let say = say.clone();
            let job: Job = Box::new(move |turn| say.send((priority, turn)).unwrap());
            workers.push(priority, &CancelWord::default(), job).map_err(|(error, _)| error).unwrap()
        };
        let [late, begun] = [push(Priority::Low), push(Priority::High)];
        late.leave(Turn::TooLate);
        assert_eq!(said.try_recv(), Ok((Priority::Low, Turn::TooLate)), "though no thread is free");
        late.leave(Turn::CalledOff);
        drop(release);
        assert_eq!(next(&said), (Priority::High, Turn::Run));
        begun.leave(Turn::TooLate);
        drop(workers);
        late.leave(Turn::TooLate);
        drop((late, begun, say));
        assert!(said.recv_timeout(LONG).is_err(), "each is told once");
    }

    #[test]
    fn a_job_that_panics_ends_no_thread() {
        let workers = Workers::new(1, 10);
        let (say, said) = channel();
        push(&workers, Priority::Low, |_| panic!("a panic that is wanted here")).unwrap();
        push(&workers, Priority::Low, move |_| say.send(()).unwrap()).unwrap();
        next(&said);
    }
}
