//! The newest frame, between the stream and its viewers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How good the pictures of the page are, of 100.
const QUALITY: u8 = 80;

/// A frame as viewers see it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Its place in the source.
    pub(crate) number: u64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// With the result drawn in.
    pub(crate) rgb: Vec<u8>,
    /// The result: a line of `--json-lines`.
    pub(crate) result: String,
    /// Made by the first viewer who needs it, and not by the stream.
    pub(crate) body: OnceLock<Vec<u8>>,
}

impl Shown {
    /// The bytes of an answer: the result's length, the result, the picture.
    pub(super) fn body(&self) -> &[u8] {
        self.body.get_or_init(|| {
            let Shown { width, height, rgb, result, .. } = self;
            // A canvas always has its bytes; a side beyond JPEG's is longer than any source's.
            let jpeg = burst_pictures::encode_jpeg(*width, *height, rgb, QUALITY);
            let length = u32::try_from(result.len()).unwrap_or(0).to_be_bytes();
            [&length[..], result.as_bytes(), &jpeg.unwrap_or_default()].concat()
        })
    }
}

/// Where the stream puts its newest frame.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The frame that the stream is at.
    current: AtomicU64,
    /// Viewers who wait for a frame.
    waiting: AtomicUsize,
    newest: Mutex<Newest>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Newest {
    shown: Option<Arc<Shown>>,
    has_ended: bool,
}

/// What a viewer gets.
#[derive(Debug)]
pub(super) enum Next {
    Frame(Arc<Shown>),
    /// None for so long.
    Nothing,
    /// There will be no more.
    End,
}

impl Frames {
    pub(crate) fn is_awaited(&self, number: u64) -> bool {
        // SeqCst, with the two in `next`: a viewer who does not see this number is seen by this.
        self.current.store(number, Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn show(&self, shown: Shown) {
        self.lock().shown = Some(Arc::new(shown));
        self.changed.notify_all();
    }

    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// The frame that the stream is at, or else the next one, if it is behind `after`; waits for it for so long.
    pub(super) fn next(&self, after: u64, patience: Duration) -> Next {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // An older one that is still here was for somebody else. One that the stream has left by the time that
        // this thread runs again is new enough: else who is slow would wait for ever.
        let current = self.current.load(Ordering::SeqCst);
        let is_new = |newest: &Newest| {
            let fresh = |shown: &&Arc<Shown>| shown.number > after && shown.number >= current;
            newest.shown.as_ref().filter(fresh).map(Arc::clone)
        };
        let lacks = |newest: &mut Newest| !newest.has_ended && is_new(newest).is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), patience, lacks);
        let (newest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        match (is_new(&newest), newest.has_ended) {
            (Some(shown), _) => Next::Frame(shown),
            (None, true) => Next::End,
            (None, false) => Next::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shown(number: u64) -> Shown {
        Shown { number, width: 1, height: 1, rgb: vec![1, 2, 3], ..Shown::default() }
    }

    fn number(next: &Next) -> Option<u64> {
        match next {
            Next::Frame(shown) => Some(shown.number),
            Next::Nothing | Next::End => None,
        }
    }

    #[test]
    fn a_frame_is_handed_over_only_while_somebody_waits_and_an_old_one_is_given_to_nobody() {
        let frames = Arc::new(Frames::default());
        assert!(!frames.is_awaited(1), "nobody is there");
        let viewer = |after| {
            let frames = Arc::clone(&frames);
            std::thread::spawn(move || number(&frames.next(after, LONG)))
        };
        let first = viewer(0);
        let mut at = 1;
        while !frames.is_awaited(at) {
            at += 1;
            std::thread::yield_now();
        }
        frames.show(shown(at));
        assert_eq!(first.join().unwrap(), Some(at));
        assert_eq!(number(&frames.next(0, LONG)), Some(at), "the stream is still there");
        assert!(!frames.is_awaited(at + 1), "nobody waits any more");
        let next = frames.next(0, Duration::ZERO);
        assert!(matches!(next, Next::Nothing), "the one before is no longer the newest: {next:?}");
    }

    #[test]
    fn who_waits_is_told_of_the_end() {
        let frames = Arc::new(Frames::default());
        let viewer = std::thread::spawn({
            let frames = Arc::clone(&frames);
            move || matches!(frames.next(0, LONG), Next::End)
        });
        frames.end();
        assert!(viewer.join().unwrap());
    }

    #[test]
    fn an_answer_is_length_result_and_picture() {
        let shown = Shown { result: "{}".into(), ..shown(1) };
        let body = shown.body();
        assert_eq!(body[..6], [0, 0, 0, 2, b'{', b'}']);
        assert_eq!(burst_pictures::decode_motion_jpeg(&body[6..]).unwrap().width, 1);
    }
}
