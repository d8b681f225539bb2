//! Binds a queue to mapped memory: lays out a new one, or attaches to one that is described.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_shm::{Mapping, Memory, ReadOnlyWord, Shared, SharedRegion, ShmError};

use crate::closer::Closed;
use crate::descriptor::{
    Descriptor, Grantor, SYNCHRONIZED, UNSYNCHRONIZED, check_disjoint, check_inside, check_numbers,
    end_of_parts, parts,
};
use crate::error::QueueError;
use crate::gauge::Gauge;
use crate::geometry::Geometry;
use crate::sync::{AtomicU64, EventWord};

/// What a new queue should be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Bytes per item.
    pub quantum: usize,
    /// Items that fit.
    pub capacity: usize,
    /// Whether the queue has an event word; blocking calls need one.
    pub event_flag: bool,
}

impl QueueConfig {
    /// `capacity` items of `quantum` bytes, with an event word.
    pub const fn new(quantum: usize, capacity: usize) -> QueueConfig {
        QueueConfig { quantum, capacity, event_flag: true }
    }

    /// The same without an event word.
    #[must_use]
    pub const fn without_event_flag(self) -> QueueConfig {
        QueueConfig { event_flag: false, ..self }
    }
}

/// Distance between what different ends write: two cache lines, because processors fetch lines in
/// pairs.
const LINE: u64 = 128;

/// The mapped parts of a queue, for an end that moves counters.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) layout: Layout,
    pub(crate) read: Shared<AtomicU64>,
    pub(crate) write: Shared<AtomicU64>,
    pub(crate) ring: SharedRegion,
    pub(crate) event: Option<Shared<EventWord>>,
    pub(crate) intent: Option<Shared<AtomicU64>>,
    pub(crate) closed: Arc<Closed>,
}

/// The mapped parts of an unsynchronized queue for one of its readers, which stores nothing.
#[derive(Debug)]
pub(crate) struct ReaderParts {
    pub(crate) layout: Layout,
    pub(crate) write: ReadOnlyWord,
    pub(crate) ring: SharedRegion,
    pub(crate) intent: Option<ReadOnlyWord>,
}

impl Parts {
    /// A new queue in memory of its own; the ring lies in `ring_memory` if that is given.
    pub(crate) fn create(
        config: &QueueConfig,
        flavour: u32,
        ring_memory: Option<Memory>,
    ) -> Result<Parts, QueueError> {
        let mut parts = Parts::create_open(config, flavour, ring_memory)?;
        // From here on the peer cannot add seals and so forbid anybody to map it. The caller's ring
        // memory is the caller's to seal.
        parts.layout.memories[0].seal_seals()?;
        Ok(parts)
    }

    /// A new queue that only the process that made it can map writable.
    pub(crate) fn create_sealed(config: &QueueConfig, flavour: u32) -> Result<Parts, QueueError> {
        let mut parts = Parts::create_open(config, flavour, None)?;
        parts.layout.memories[0].seal_future_write()?;
        Ok(parts)
    }

    fn create_open(
        config: &QueueConfig,
        flavour: u32,
        ring_memory: Option<Memory>,
    ) -> Result<Parts, QueueError> {
        let geometry = Geometry::new(config.capacity as u64, config.quantum as u64)?;
        let (grantors, len) = lay_out(&geometry, config, flavour, ring_memory.is_some());
        let mut fds = vec![OwnedFd::from(Memory::create("fmq", len)?)];
        fds.extend(ring_memory.map(OwnedFd::from));
        let quantum = u32::try_from(geometry.quantum()).unwrap_or(0);
        // The same checks as for a peer's descriptor: the caller's ring memory may be too small.
        let descriptor = Descriptor { grantors, fds, quantum, flags: flavour };
        Parts::attach(descriptor, flavour)
    }

    /// A queue that the peer made. Counters are taken as they are.
    pub(crate) fn attach(descriptor: Descriptor, flavour: u32) -> Result<Parts, QueueError> {
        let layout = Layout::open(descriptor, flavour)?;
        let mappings = layout.map(Mapping::map_first)?;
        let counter = |grantor: &Grantor| {
            let (mapping, offset) = location(&mappings, grantor);
            Shared::new(mapping, offset)
        };
        let word = |grantor: &Grantor| {
            let (mapping, offset) = location(&mappings, grantor);
            Shared::new(mapping, offset)
        };
        let grantors = &layout.grantors;
        Ok(Parts {
            read: counter(&grantors[0])?,
            write: counter(&grantors[1])?,
            ring: layout.ring(&mappings)?,
            event: grantors.get(3).map(word).transpose()?,
            intent: grantors.get(4).map(counter).transpose()?,
            closed: Arc::new(Closed::new()),
            layout,
        })
    }

    /// Says how full the queue is.
    pub(crate) fn gauge(&self) -> Gauge {
        Gauge {
            read: self.read.clone(),
            write: self.write.clone(),
            quantum: self.layout.quantum_bytes(),
            capacity: self.layout.capacity_items(),
        }
    }
}

impl ReaderParts {
    /// As [`Parts::attach`]; works where the memory can only be mapped for reading.
    pub(crate) fn attach(descriptor: Descriptor, flavour: u32) -> Result<ReaderParts, QueueError> {
        let layout = Layout::open(descriptor, flavour)?;
        let mappings = layout.map(Mapping::map_first_read_only)?;
        let counter = |grantor: &Grantor| {
            let (mapping, offset) = location(&mappings, grantor);
            ReadOnlyWord::new(mapping, offset)
        };
        let grantors = &layout.grantors;
        Ok(ReaderParts {
            write: counter(&grantors[1])?,
            ring: layout.ring(&mappings)?,
            intent: grantors.get(4).map(counter).transpose()?,
            layout,
        })
    }
}

/// Where the parts of a queue lie: a description that was checked, and the memories behind it.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: Geometry,
    grantors: Vec<Grantor>,
    memories: Vec<Memory>,
    quantum: u32,
    flags: u32,
}

impl Layout {
    /// Checks everything that a peer may have described wrongly.
    fn open(descriptor: Descriptor, flavour: u32) -> Result<Layout, QueueError> {
        check_numbers(&descriptor, flavour)?;
        let (quantum, flags) = (descriptor.quantum, descriptor.flags);
        let (grantors, memories) = open_used(descriptor)?;
        check_inside(&grantors, |index| memories[index as usize].len())?;
        // When in doubt: the same.
        check_disjoint(&grantors, |a, b| {
            a == b || memories[a as usize].is_same_object(&memories[b as usize]).unwrap_or(true)
        })?;
        let geometry = Geometry::new(grantors[2].extent / u64::from(quantum), u64::from(quantum))?;
        Ok(Layout { geometry, grantors, memories, quantum, flags })
    }

    /// Maps each memory up to the end of the last part in it; [`Layout::open`] saw that it is as long.
    fn map(
        &self,
        map: impl Fn(&Memory, u64) -> Result<Mapping, ShmError>,
    ) -> Result<Vec<Arc<Mapping>>, ShmError> {
        let memories = (0..).zip(&self.memories);
        memories
            .map(|(index, memory)| Ok(Arc::new(map(memory, end_of_parts(&self.grantors, index))?)))
            .collect()
    }

    fn ring(&self, mappings: &[Arc<Mapping>]) -> Result<SharedRegion, ShmError> {
        let (mapping, offset) = location(mappings, &self.grantors[2]);
        let len = usize::try_from(self.geometry.capacity()).unwrap_or(usize::MAX);
        SharedRegion::new(mapping, offset, len)
    }

    /// Items that fit.
    pub(crate) fn capacity_items(&self) -> usize {
        let items = self.geometry.items(self.geometry.capacity()).unwrap_or(0);
        usize::try_from(items).unwrap_or(usize::MAX)
    }

    /// Bytes per item.
    pub(crate) fn quantum_bytes(&self) -> usize {
        usize::try_from(self.geometry.quantum()).unwrap_or(usize::MAX)
    }

    /// The description for the end that attaches, with descriptors of its own.
    pub(crate) fn descriptor(&self) -> Result<Descriptor, QueueError> {
        let fds: Result<Vec<OwnedFd>, ShmError> =
            self.memories.iter().map(Memory::duplicate_fd).collect();
        Ok(Descriptor {
            grantors: self.grantors.clone(),
            fds: fds?,
            quantum: self.quantum,
            flags: self.flags,
        })
    }
}

/// The mapping that a part lies in, and where in it.
fn location(mappings: &[Arc<Mapping>], grantor: &Grantor) -> (Arc<Mapping>, usize) {
    (Arc::clone(&mappings[grantor.fd_index as usize]), grantor.offset as usize)
}

/// Opens the memories in use, once each, and renumbers the grantors to them. Descriptors that no
/// grantor names are closed.
fn open_used(descriptor: Descriptor) -> Result<(Vec<Grantor>, Vec<Memory>), QueueError> {
    let mut grantors: Vec<Grantor> = parts(&descriptor).map(|(_, grantor)| *grantor).collect();
    let mut opened: Vec<(u32, Memory)> = Vec::new();
    for (index, fd) in (0..).zip(descriptor.fds) {
        if grantors.iter().any(|grantor| grantor.fd_index == index) {
            opened.push((index, Memory::from_fd(fd)?));
        }
    }
    for grantor in &mut grantors {
        // Found: `check_numbers` saw that each index has its descriptor.
        let position = (0..).zip(&opened).find(|(_, (index, _))| *index == grantor.fd_index);
        grantor.fd_index = position.map_or(0, |(position, _)| position);
    }
    Ok((grantors, opened.into_iter().map(|(_, memory)| memory).collect()))
}

/// Where everything lies in a new queue, and the length of its control memory.
///
/// Every word that one end writes and the other reads has cache lines of its own. libfmq packs
/// them, but follows whatever offsets the grantors give.
fn lay_out(
    geometry: &Geometry,
    config: &QueueConfig,
    flavour: u32,
    separate_ring: bool,
) -> (Vec<Grantor>, usize) {
    let at = |line: u32, extent| Grantor {
        flags: 0,
        fd_index: 0,
        offset: line * u32::try_from(LINE).unwrap_or(0),
        extent,
    };
    let mut ring = at(4, geometry.capacity());
    let mut len = 4 * LINE + geometry.capacity();
    if separate_ring {
        (ring.fd_index, ring.offset) = (1, 0);
        len = 4 * LINE;
    }
    let mut grantors = vec![at(0, 8), at(1, 8), ring];
    let intent = flavour == UNSYNCHRONIZED;
    debug_assert!(intent || flavour == SYNCHRONIZED);
    // The intent is the fifth grantor, so there must be a fourth.
    if config.event_flag || intent {
        grantors.push(at(2, 4));
    }
    if intent {
        grantors.push(at(3, 8));
    }
    (grantors, usize::try_from(len).unwrap_or(usize::MAX))
}
