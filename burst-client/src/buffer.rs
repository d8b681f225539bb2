//! A buffer of the driver in another process, as a [`burst_hal::Buffer`].

use std::sync::Arc;

use burst_hal::validate::{MAX_BUFFER_MODELS, MAX_BUFFER_ROLES, MAX_RANK};
use burst_hal::{Buffer, BufferRequest, BufferRole, Failure, Memory, Pool, PreparedModel};
use burst_wire::control::{Answer, Call, List, PoolSource, WireBufferRequest, WireRole};
use fmq::Deadline;

use crate::connection::{Link, RemoteToken};
use crate::{ClientError, RemotePreparedModel, ShmMemory};

/// A buffer in the driver's own memory. Executions on models of the same connection name it by its
/// [`token`](Buffer::token), over the socket and over bursts; its value does not leave the driver unless it is
/// copied. The service lets go of it when this is dropped.
#[derive(Debug)]
pub struct RemoteBuffer {
    token: Arc<RemoteToken>,
}

impl RemoteBuffer {
    pub(crate) fn allocate(
        link: &Arc<Link>,
        device: u32,
        request: &BufferRequest,
        deadline: Deadline,
    ) -> Result<Self, ClientError> {
        link.check_not_forked()?;
        let request = to_wire(link, request)?;
        link.give_back_dropped(deadline)?;
        match link.quick_call(Call::AllocateBuffer { device, request }, &[], deadline)? {
            (Answer::Buffer { token }, _) => {
                Ok(RemoteBuffer { token: RemoteToken::new(link, token)? })
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// Whether it was made over the same connection as a model: only there its token means it.
    #[must_use]
    pub fn is_beside(&self, model: &RemotePreparedModel) -> bool {
        Arc::ptr_eq(self.token.link(), model.handle().link())
    }

    /// Copies its value to a pool of the same size.
    ///
    /// # Errors
    /// The service refuses, or is gone.
    pub fn read_into(&self, destination: &Pool) -> Result<(), ClientError> {
        self.read_into_until(destination, Deadline::never())
    }

    /// The same, with no answer later than this.
    ///
    /// # Errors
    /// As [`RemoteBuffer::read_into`]; [`ClientError::Timeout`].
    pub fn read_into_until(
        &self,
        destination: &Pool,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let link = self.token.link();
        link.check_not_forked()?;
        let token = self.token.token();
        if let Some(memory) = link.share_memory(destination, deadline)? {
            let to = PoolSource::Shared { memory };
            return self.copy(Call::CopyFromBuffer { token, to }, None, deadline);
        }
        let copy = room_for(destination)?;
        let to = PoolSource::Descriptor { length: destination.len() };
        self.copy(Call::CopyFromBuffer { token, to }, Some(&copy), deadline)?;
        let mut bytes = vec![0; length(destination)?];
        copy.read(0, &mut bytes)?;
        Ok(destination.write(0, &bytes)?)
    }

    /// Gives it the value that lies in a pool. `dimensions` are those of the value, and may be empty
    /// where the buffer was made with all of them known.
    ///
    /// # Errors
    /// The service refuses, or is gone.
    pub fn fill_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), ClientError> {
        self.fill_from_until(source, dimensions, Deadline::never())
    }

    /// The same, with no answer later than this.
    ///
    /// # Errors
    /// As [`RemoteBuffer::fill_from`]; [`ClientError::Timeout`].
    pub fn fill_from_until(
        &self,
        source: &Pool,
        dimensions: &[u32],
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let link = self.token.link();
        link.check_not_forked()?;
        // More than any value has: the service refuses one too many as it would refuse them all.
        let dimensions = &dimensions[..dimensions.len().min(MAX_RANK + 1)];
        let (token, dimensions) = (self.token.token(), List(dimensions.to_vec()));
        if let Some(memory) = link.share_memory(source, deadline)? {
            let from = PoolSource::Shared { memory };
            return self.copy(Call::CopyToBuffer { token, from, dimensions }, None, deadline);
        }
        let copy = room_for(source)?;
        let mut bytes = vec![0; length(source)?];
        source.read(0, &mut bytes)?;
        copy.write(0, &bytes)?;
        let from = PoolSource::Descriptor { length: source.len() };
        self.copy(Call::CopyToBuffer { token, from, dimensions }, Some(&copy), deadline)
    }

    fn copy(
        &self,
        call: Call,
        memory: Option<&ShmMemory>,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let descriptors: Vec<_> = memory.and_then(Memory::fd).into_iter().collect();
        match self.token.link().call(call, &descriptors, deadline)? {
            (Answer::Done, _) => Ok(()),
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }
}

/// What a buffer is asked for, with the numbers by which the service knows the models.
fn to_wire(link: &Arc<Link>, request: &BufferRequest) -> Result<WireBufferRequest, ClientError> {
    let BufferRequest { dimensions, models, inputs, outputs } = request;
    within("models", models.len(), MAX_BUFFER_MODELS)?;
    within("roles", inputs.len().saturating_add(outputs.len()), MAX_BUFFER_ROLES)?;
    within("dimensions", dimensions.len(), MAX_RANK)?;
    let number = |(index, model): (usize, &Arc<dyn PreparedModel>)| {
        let model = model.downcast_ref::<RemotePreparedModel>();
        let own = model.map(RemotePreparedModel::handle);
        let own = own.filter(|model| Arc::ptr_eq(model.link(), link));
        own.map(|model| model.number()).ok_or(ClientError::OtherConnection { model: index })
    };
    let roles = |roles: &[BufferRole]| roles.iter().map(WireRole::from).collect();
    Ok(WireBufferRequest {
        dimensions: List(dimensions.to_vec()),
        models: List(models.iter().enumerate().map(number).collect::<Result<_, _>>()?),
        inputs: roles(inputs),
        outputs: roles(outputs),
    })
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<(), ClientError> {
    match found <= limit {
        true => Ok(()),
        false => Err(ClientError::BufferTooLarge { what, found, limit }),
    }
}

/// Shared memory that is as long as a pool, or longer where that is empty: no memory is.
fn room_for(pool: &Pool) -> Result<ShmMemory, ClientError> {
    ShmMemory::create(length(pool)?.max(1))
}

fn length(pool: &Pool) -> Result<usize, ClientError> {
    let bytes = pool.len();
    usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })
}

impl Buffer for RemoteBuffer {
    fn token(&self) -> u32 {
        self.token.token()
    }

    fn copy_to(&self, destination: &Pool) -> Result<(), Failure> {
        Ok(self.read_into(destination)?)
    }

    fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), Failure> {
        Ok(self.fill_from(source, dimensions)?)
    }
}
