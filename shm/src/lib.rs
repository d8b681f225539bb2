//! Memory that two processes share, and the only crate that touches it with `unsafe`.
//!
//! | type | what it is | who may write it |
//! |---|---|---|
//! | [`Memory`] | a descriptor and its length: memfd made here, or a descriptor from a peer | – |
//! | [`Mapping`], [`Region`], [`SharedRegion`], [`Shared`] | a mapping of a [`Memory`] and windows onto it; bytes come and go as copies, words as atomics | both processes, at any instant |
//! | [`ReadOnlyWord`] | a word that this end only loads, in a mapping for reading too | the other end |
//! | [`SoleWriter`] | memory made here that no other process can ever map writable | this process, through `&mut` |
//! | [`SealedBytes`] | memory that no process can write any more (model weights) | no process |
//! | [`ForkMark`] | a mark that a forked child does not have | this process |
//! | [`Pool`] | a memory pool that the peer handed over by descriptor, mapped where that is safe and read with `pread` where it is not | the peer |
//! | [`DmaHeap`] | where buffers come from that devices share | – |
//! | [`SenderWatch`] | which process sent a packet: no memory, but a system call without a safe form | – |
//! | [`allow_descriptors`] | whether a socket takes descriptors: likewise | – |
//! | [`is_zen4`], [`is_zen4_or_zen5`], [`gives_lines_away`] | which kind of CPU this is, for queues and kernels that are fastest in different ways: no memory | – |
//! | [`finish_loads`] | polling on half of a core without taking the time of the other: likewise | – |
//! | [`LookAhead`] | looking at a word so that what it announces is fetched with it: likewise | – |
//! | [`PageRoom`] | memory of this process for large values, on huge pages where [some are free](FreeHugePages) or a room before left some | this process |
//! | [`populate`], [`clear`] | pages of memory of this process that is about to be written: likewise | this process |
//! | [`give_back_freed_memory`] | what the heap and such rooms keep of freed memory: likewise | – |
//! | [`sync_file_status`] | how far a fence of the kernel is: likewise | – |
//!
//! # Why a peer cannot harm us through a descriptor
//!
//! * *It cannot make us fault.* Touching a mapping behind the end of a file raises `SIGBUS`. So
//!   nothing is mapped unless it carries `F_SEAL_SHRINK` (we add the seal where it is missing),
//!   and the length is read after the seal is known to be there. Everything else is read and
//!   written with `pread` and `pwrite`, where a short file is an ordinary error. Buffers of devices
//!   (dma-bufs) know neither seals nor `pread`: they are mapped, and the kernel copies, for which a
//!   page that is not there is an ordinary error too.
//! * *It cannot make us disagree with ourselves.* Bytes which another process can write are copied
//!   out before any code reads them; there is no `&[u8]` to them.
//! * *It cannot break Rust's rules.* Copies are atomic byte by byte, so that nobody who writes meanwhile,
//!   a thread of this process included, makes them a data race. `&[u8]` and `&mut [u8]` exist only for memory that the kernel
//!   keeps everybody else from writing: sealed `F_SEAL_WRITE`, or sealed `F_SEAL_FUTURE_WRITE`
//!   by us before the descriptor ever left the process.
//!
//! What stays possible: a peer may hand over a descriptor of a file system that answers slowly or
//! never (FUSE), or of a buffer whose device is busy with it. Only the thread that serves this peer waits for it.

mod copied;
mod copy;
mod cpu;
mod dma_buf;
mod error;
mod fd_kind;
mod fork;
mod heap;
mod huge_pages;
mod look_ahead;
mod mapping;
mod memory_object;
#[cfg(loom)]
pub mod model;
mod page_room;
mod pool;
mod populate;
mod region;
mod sealed;
mod sender;
mod socket_option;
mod sole_writer;
mod stretch;
mod sync_file;

pub use cpu::{finish_loads, gives_lines_away, is_zen4, is_zen4_or_zen5};
pub use dma_buf::{DMA_BUF_SYNC, DmaHeap};
pub use error::{Refusal, ShmError};
pub use fork::ForkMark;
pub use heap::give_back_freed_memory;
pub use huge_pages::FreeHugePages;
pub use look_ahead::LookAhead;
pub use mapping::{Mapping, mapped_bytes};
pub use memory_object::{MAX_LEN, Memory, Seals};
pub use page_room::PageRoom;
pub use pool::{Pool, pool_copies};
pub use populate::{clear, populate};
pub use region::{PeerWritable, ReadOnlyWord, Region, Shared, SharedRegion};
pub use rustix::io::Errno;
pub use sealed::SealedBytes;
pub use sender::{Sender, SenderWatch, SentPacket};
pub use socket_option::allow_descriptors;
pub use sole_writer::SoleWriter;
pub use stretch::HUGE_PAGE;
pub use sync_file::{SYNC_FILE_INFO, SyncFileStatus, sync_file_status};
