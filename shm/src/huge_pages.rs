//! How many huge pages the kernel has ready.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::param::page_size;

use crate::stretch::HUGE_PAGE;

/// Most bytes of the kernel's list that are read: a line for each zone of memory, of which a machine with several
/// sockets has some dozens.
const MAX_LIST: usize = 16 << 10;

/// The kernel's list of free memory, which is opened once.
///
/// Who asks for a huge page where none is free waits until the kernel has moved other memory together, and with them
/// whoever wants a mapping in the same process. So only such pages are asked for as are there.
#[derive(Debug, Default)]
pub struct FreeHugePages(Option<File>);

impl FreeHugePages {
    /// Where the process may not read the list, no page is ready.
    #[must_use]
    pub fn open() -> Self {
        FreeHugePages(File::open(Path::new("/proc/buddyinfo")).ok())
    }

    /// How many there are at this moment.
    #[must_use]
    pub fn ready(&self) -> usize {
        let Some(file) = &self.0 else { return 0 };
        let (mut list, mut len) = ([0; MAX_LIST], 0);
        while let Ok(more @ 1..) = file.read_at(&mut list[len..], len as u64) {
            len += more;
        }
        std::str::from_utf8(&list[..len]).map_or(0, |list| ready_in(list, page_size()))
    }
}

/// How many there are by this list: for each zone, how many free blocks it has of one page, of two, of four and so on.
fn ready_in(list: &str, page: usize) -> usize {
    let order = (HUGE_PAGE / page.max(1)).checked_ilog2().unwrap_or(0) as usize;
    let zone = |line: &str| {
        let (_, counts) = line.split_once("zone")?;
        let counts = counts.split_ascii_whitespace().skip(1 + order);
        counts.zip(0..usize::BITS).try_fold(0usize, |sum, (count, power)| {
            let pages = count.parse::<usize>().ok()?.checked_shl(power)?;
            sum.checked_add(pages)
        })
    };
    list.lines().filter_map(zone).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_blocks_of_a_huge_page_and_more_count_as_such_pages() {
        let list = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
                    Node 0, zone   Normal  38287  25904  13507  14701  14551   9178   6042   2071    968    488   2077 \n";
        assert_eq!(ready_in(list, 4096), 1 + 2 * 3 + 488 + 2 * 2077);
        let of_normal = (9178 + 2 * 6042) + (4 * 2071 + 8 * 968) + (16 * 488 + 32 * 2077);
        assert_eq!(ready_in(list, 65536), 8 + 16 + 32 * 3 + of_normal);
        // Another page's huge pages are of another size; whatever the list says, it is no more than a number.
        for list in ["", "zone", "Node 0, zone Normal 1 x", "Node 0, zone N 1 2 3 4 5 6 7 8 9 -1 7"]
        {
            assert_eq!(ready_in(list, 4096), 0, "{list}");
        }
    }

    #[test]
    fn the_list_of_this_machine_can_be_read_again_and_again() {
        let pages = FreeHugePages::open();
        if pages.0.is_some() {
            let zones = std::fs::read_to_string("/proc/buddyinfo").unwrap();
            assert!(zones.len() < MAX_LIST, "{} bytes", zones.len());
            for _ in 0..2 {
                let (before, ready) = (ready_in(&zones, page_size()), pages.ready());
                // Others take and give back memory meanwhile.
                assert!(ready > 0 || before < 8, "{ready} pages after {before}");
            }
        }
        assert_eq!(FreeHugePages(None).ready(), 0);
    }
}
