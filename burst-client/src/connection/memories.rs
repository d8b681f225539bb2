//! Memories that cross the socket: shared with the service, made by it, and given back.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::Pool;
use burst_wire::control::{Answer, Call};
use fmq::Deadline;

use super::Connection;
use crate::waiting::Patience;
use crate::{ClientError, ShmMemory};

impl Connection {
    /// The number by which the service knows a memory; sends it there if it has none yet. `None`
    /// for memory that has no descriptor to send.
    pub(crate) fn share_memory<'a>(
        &self,
        memory: &Pool,
        patience: impl Into<Patience<'a>>,
    ) -> Result<Option<u32>, ClientError> {
        let patience = patience.into();
        if let Some(number) = self.memories.number(memory) {
            return Ok(Some(number));
        }
        let Some(descriptor) = memory.fd() else { return Ok(None) };
        self.give_back_dropped(patience)?;
        let number = self.memories.reserve();
        let call = Call::ShareMemory { memory: number, length: memory.len() };
        self.call_acknowledged(call, &[descriptor], patience)?;
        self.memories.insert(number, memory);
        Ok(Some(number))
    }

    /// Lets the service make memory that it writes and this process can only read.
    pub(crate) fn allocate_memory(&self, length: u64) -> Result<Pool, ClientError> {
        self.check_not_forked()?;
        self.give_back_dropped(Deadline::never())?;
        let number = self.memories.reserve();
        let call = Call::AllocateMemory { memory: number, length };
        let (Answer::Done, descriptors) = self.quick_call(call, &[], Deadline::never())? else {
            return Err(ClientError::UnexpectedAnswer);
        };
        match opened(descriptors, length) {
            Ok(memory) => {
                self.memories.insert(number, &memory);
                Ok(memory)
            }
            Err(error) => {
                // The service has made it, and nobody here could ever give it back.
                self.release_remote(Call::ForgetMemory { memory: number }, "a memory", number);
                Err(error)
            }
        }
    }

    /// Gives the service back every memory that the program dropped: those in slots of all bursts,
    /// then the memories themselves. Whatever is asked of the service afterwards finds their room
    /// free.
    ///
    /// # Errors
    /// The service is gone, or silent; or it was called off.
    pub(crate) fn give_back_dropped<'a>(
        &self,
        patience: impl Into<Patience<'a>>,
    ) -> Result<(), ClientError> {
        self.check_not_forked()?;
        let patience = patience.into();
        let _alone = self.giving_back.acquire(patience)?;
        let bursts: Vec<_> = {
            let bursts = self.lock_bursts();
            bursts.iter().map(|(burst, watch)| (*burst, Arc::clone(watch))).collect()
        };
        for (burst, watch) in bursts {
            for slot in watch.slots.dropped() {
                match self.call_acknowledged(Call::FreeMemory { burst, slot }, &[], patience) {
                    // The burst was dropped meanwhile, and its slots with it.
                    Ok(()) | Err(ClientError::Refused { .. }) => watch.slots.remove(slot),
                    Err(error) => return Err(error),
                }
            }
        }
        for (key, memory) in self.memories.dropped() {
            self.call_acknowledged(Call::ForgetMemory { memory }, &[], patience)?;
            self.memories.remove(key);
        }
        Ok(())
    }
}

/// The memory that came with an answer.
fn opened(descriptors: Vec<OwnedFd>, length: u64) -> Result<Pool, ClientError> {
    let descriptor = descriptors.into_iter().next().ok_or(ClientError::UnexpectedAnswer)?;
    Ok(Arc::new(ShmMemory::open(descriptor, length)?))
}
