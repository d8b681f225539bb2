//! How a list of packed weights comes to its memory.

use burst_shm::{clear, populate};

use crate::aligned::Line;
use crate::kernels::simd::Lines;
use crate::pages::{Pages, SMALLEST};
use crate::weight_room::Packed;

/// Lists of so many bytes are more than a core's own caches hold.
const STREAMED: usize = 1 << 20;

/// A list of packed weights that grows part by part, and has room for all of them.
#[derive(Debug)]
pub(crate) struct Growing {
    lines: Lines,
    pages: Pages,
    way: Way,
}

/// How the lines of a list come to their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the caches, into which the kernel brings new pages as it clears them.
    New,
    /// Through the caches, into which a stretch at a time is brought by writing zeros to it: that fetches no line from memory,
    /// where each line that is written for itself would be.
    Cleared,
    /// Past the caches, in which neither it nor what it is made from has room.
    Streamed,
}

impl Growing {
    pub(crate) fn new(list: Packed<Line>) -> Self {
        let way = match list.capacity() * size_of::<Line>() {
            _ if list.allocator().is_new() => Way::New,
            ..SMALLEST => Way::New, // too little to be worth it
            SMALLEST..STREAMED => Way::Cleared,
            STREAMED.. => Way::Streamed,
        };
        let pages = Pages::default();
        Growing { lines: Lines::of(list, way == Way::Streamed), pages, way }
    }

    /// The list, with room for so many more lines that was made ready.
    #[inline]
    pub(crate) fn ahead(&mut self, more: usize) -> &mut Lines {
        let make = if self.way == Way::Cleared { clear } else { populate };
        self.pages.ahead_of_by(self.lines.len(), self.lines.room(), more, make);
        &mut self.lines
    }

    /// The list as it is.
    pub(crate) fn into_list(self) -> Packed<Line> {
        self.lines.into_list()
    }
}

#[cfg(test)]
mod tests {
    use burst_shm::PageRoom;

    use super::*;

    #[test]
    fn a_list_grows_to_what_it_has_room_for() {
        let count = STREAMED / size_of::<Line>();
        for room in [PageRoom::default(), PageRoom::reserve(STREAMED, 0)] {
            for (count, way) in [
                (count, Way::Streamed),
                (count - 1, Way::Cleared),
                (SMALLEST / size_of::<Line>(), Way::Cleared),
                (1, Way::New),
            ] {
                let mut growing = Growing::new(room.list(count).unwrap());
                assert_eq!(growing.way, if room.is_new() { Way::New } else { way });
                for number in 0..count {
                    let lines = growing.ahead(1);
                    assert_eq!(lines.len(), number);
                    lines.append_each([Line([1; 64])]);
                }
                let list = growing.into_list();
                assert!(list.len() == count && list.iter().all(|line| line.0 == [1; 64]));
            }
        }
    }
}
