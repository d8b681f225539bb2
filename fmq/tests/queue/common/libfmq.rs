//! The other end as libfmq plays it, written from `fmq.md` alone: its default layout (counters side
//! by side at 0 and 8, ring at 16, event word behind), both counters read every time, a division per
//! position, a wake per blocking call, counters reset on attach unless told otherwise.
#![allow(dead_code, reason = "each test file uses its part")]

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared, SharedRegion};
use fmq::{Descriptor, Grantor, UNSYNCHRONIZED};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

pub const NOT_FULL: u32 = 1;
pub const NOT_EMPTY: u32 = 2;

/// One end, whichever.
pub struct Libfmq {
    read: Shared<AtomicU64>,
    write: Shared<AtomicU64>,
    ring: SharedRegion,
    event: Option<Shared<AtomicU32>>,
    size: u64,
    quantum: u64,
    /// Readers of the unsynchronized flavour keep their counter on their heap.
    own_read: Option<AtomicU64>,
}

/// A queue in libfmq's default layout.
pub fn describe(items: u64, quantum: u32, flags: u32, event: bool) -> Descriptor {
    let ring = items * u64::from(quantum);
    let mut grantors = vec![grantor(0, 8), grantor(8, 8), grantor(16, ring)];
    let word_at = (16 + ring).next_multiple_of(8);
    if event {
        grantors.push(grantor(u32::try_from(word_at).unwrap(), 4));
    }
    let size = (ring.next_multiple_of(8) + 16 + if event { 4 } else { 0 }).next_multiple_of(4096);
    let memory = Memory::create("libfmq", usize::try_from(size).unwrap()).unwrap();
    Descriptor { grantors, fds: vec![OwnedFd::from(memory)], quantum, flags }
}

pub fn grantor(offset: u32, extent: u64) -> Grantor {
    Grantor { flags: 0, fd_index: 0, offset, extent }
}

/// A copy with descriptors of its own.
pub fn duplicate(descriptor: &Descriptor) -> Descriptor {
    let fds = descriptor.fds.iter().map(|fd| fd.try_clone().unwrap()).collect();
    let Descriptor { grantors, quantum, flags, .. } = descriptor;
    Descriptor { grantors: grantors.clone(), fds, quantum: *quantum, flags: *flags }
}

impl Libfmq {
    /// Maps each grantor for itself, as libfmq does. `reset` is its default.
    pub fn attach(descriptor: Descriptor, reset: bool) -> Libfmq {
        let memories: Vec<Memory> =
            descriptor.fds.into_iter().map(|fd| Memory::from_fd(fd).unwrap()).collect();
        let map = |g: &Grantor| Arc::new(Mapping::map(&memories[g.fd_index as usize]).unwrap());
        let word = |g: &Grantor| Shared::new(map(g), g.offset as usize).unwrap();
        let grantors = &descriptor.grantors;
        let ring = &grantors[2];
        let queue = Libfmq {
            read: word(&grantors[0]),
            write: word(&grantors[1]),
            ring: SharedRegion::new(map(ring), ring.offset as usize, ring.extent as usize).unwrap(),
            event: grantors.get(3).map(|g| Shared::new(map(g), g.offset as usize).unwrap()),
            size: ring.extent,
            quantum: u64::from(descriptor.quantum),
            own_read: (descriptor.flags == UNSYNCHRONIZED).then(|| AtomicU64::new(0)),
        };
        if reset {
            queue.counter().store(0, Ordering::Release);
            queue.write.store(0, Ordering::Release);
        }
        queue
    }

    fn counter(&self) -> &AtomicU64 {
        self.own_read.as_ref().unwrap_or(&self.read)
    }

    pub fn available_to_read(&self) -> u64 {
        let (w, r) = (self.write.load(Ordering::Acquire), self.counter().load(Ordering::Acquire));
        w.saturating_sub(r) / self.quantum
    }

    pub fn available_to_write(&self) -> u64 {
        let (w, r) = (self.write.load(Ordering::Acquire), self.counter().load(Ordering::Acquire));
        self.size.saturating_sub(w.saturating_sub(r)) / self.quantum
    }

    pub fn write(&self, items: &[u8]) -> bool {
        let n = items.len() as u64 / self.quantum;
        if self.own_read.is_none() && self.available_to_write() < n || n > self.size / self.quantum
        {
            return false;
        }
        let write = self.write.load(Ordering::Relaxed);
        if !write.is_multiple_of(self.quantum) {
            return false;
        }
        for (i, byte) in items.iter().enumerate() {
            let at = ((write + i as u64) % self.size) as usize;
            self.ring.region().copy_in(at, &[*byte]).unwrap();
        }
        self.write.store(write + items.len() as u64, Ordering::Release);
        true
    }

    pub fn read(&self, items: &mut [u8]) -> bool {
        let (w, r) = (self.write.load(Ordering::Acquire), self.counter().load(Ordering::Relaxed));
        if !w.is_multiple_of(self.quantum) || !r.is_multiple_of(self.quantum) {
            return false;
        }
        if w.wrapping_sub(r) > self.size {
            self.counter().store(w, Ordering::Release);
            return false;
        }
        if w - r < items.len() as u64 {
            return false;
        }
        for (i, byte) in items.iter_mut().enumerate() {
            let at = ((r + i as u64) % self.size) as usize;
            self.ring.region().copy_out(at, std::slice::from_mut(byte)).unwrap();
        }
        let w = self.write.load(Ordering::Acquire);
        if w.wrapping_sub(r) > self.size {
            self.counter().store(w, Ordering::Release);
            return false;
        }
        self.counter().store(r + items.len() as u64, Ordering::Release);
        true
    }

    /// Waits without end, as with a time-out of zero.
    pub fn write_blocking(&self, items: &[u8]) {
        while !self.write(items) {
            self.wait(NOT_FULL);
        }
        self.wake(NOT_EMPTY);
    }

    pub fn read_blocking(&self, items: &mut [u8]) {
        while !self.read(items) {
            self.wait(NOT_EMPTY);
        }
        self.wake(NOT_FULL);
    }

    pub fn wake(&self, bits: u32) {
        let word = self.event.as_ref().unwrap();
        if word.fetch_or(bits, Ordering::SeqCst) & bits != bits {
            let mask = NonZeroU32::new(bits).unwrap();
            futex::wake_bitset(word, Flags::empty(), i32::MAX as u32, mask).unwrap();
        }
    }

    /// Until one of the bits is there, with internal retry.
    fn wait(&self, bits: u32) {
        let word = self.event.as_ref().unwrap();
        loop {
            let old = word.fetch_and(!bits, Ordering::SeqCst);
            if old & bits != 0 {
                return;
            }
            let mask = NonZeroU32::new(bits).unwrap();
            match futex::wait_bitset(word, Flags::empty(), old & !bits, None, mask) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => panic!("{errno}"),
            }
        }
    }

    /// The event word as it is.
    pub fn event_bits(&self) -> u32 {
        self.event.as_ref().unwrap().load(Ordering::SeqCst)
    }

    /// The shared words, to be put out of order.
    pub fn words(&self) -> (&AtomicU64, &AtomicU64) {
        (&self.read, &self.write)
    }
}
